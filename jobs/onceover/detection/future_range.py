"""Ranges of windows that lie ahead of the clock: meant where the ledger knows windows there, mistyped elsewhere."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from onceover.context import PipelineContext
from onceover.errors import OnceoverError
from onceover.ledger.queries import read_last_end
from onceover.model.window import WindowRange


def reject_future_range(context: PipelineContext, asked: WindowRange) -> WindowRange:
    """The range, if it ends in the past or the ledger knows windows up to there: records may be dated ahead.

    Raises UsageError otherwise, also where the ledger cannot be asked. What the clock has passed needs no ledger.
    """
    clock = datetime.now(UTC)
    if asked.end <= clock:
        return asked
    with suppress(OnceoverError):
        clock = max(clock, read_last_end(context.ledger, context.name) or clock)
    return asked.require_end_by(clock)
