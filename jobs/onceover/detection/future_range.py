"""Ranges of windows ahead of the clock: valid where the ledger has windows there, typing errors elsewhere."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from onceover.context import PipelineContext
from onceover.errors import OnceoverError
from onceover.ledger.windows import read_last_end
from onceover.model.window import WindowRange


def reject_future_range(context: PipelineContext, requested: WindowRange) -> WindowRange:
    """Return the range if it ends in the past, or the ledger has windows up to its end: records may be dated ahead.

    Raises UsageError otherwise, also where the ledger cannot be read. A range in the past needs no ledger.
    """
    clock = datetime.now(UTC)
    if requested.end <= clock:
        return requested
    with suppress(OnceoverError):
        clock = max(clock, read_last_end(context.ledger, context.name) or clock)
    return requested.require_end_by(clock)
