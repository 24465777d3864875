"""Ranges of windows ahead of the clock: valid where the ledger has windows there, cut or refused elsewhere."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from onceover.context import PipelineContext
from onceover.errors import OnceoverError
from onceover.ledger.windows import read_last_end
from onceover.model.window import Window, WindowRange


def reject_future_range(context: PipelineContext, requested: WindowRange) -> WindowRange:
    """Return the range if it ends in the past, or the ledger has windows up to its end: records may be dated ahead.

    Raises UsageError otherwise, also where the ledger cannot be read. A range in the past needs no ledger.
    """
    return requested.require_end_by(_find_newest(context, requested))


def resolve_window(context: PipelineContext, text: str) -> Window:
    """Return the window by its typed start. Raises UsageError for a time at which no window starts, or a future one."""
    window = context.windowing.parse_window(text)
    reject_future_range(context, WindowRange(window.start, window.end))
    return window


def cut_future_range(context: PipelineContext, requested: WindowRange) -> WindowRange:
    """Return the range without the windows that end in the future, unless the ledger has windows there.

    Raises UsageError if it begins there: that is a typing error."""
    newest = context.windowing.floor(_find_newest(context, requested))
    if requested.start < newest < requested.end:
        return replace(requested, end=newest)
    return requested.require_end_by(newest)


def _find_newest(context: PipelineContext, requested: WindowRange) -> datetime:
    """Return the clock, or the end of the ledger's last window where that is later; at least the end of a range in the
    past, which needs no ledger."""
    clock = datetime.now(UTC)
    if requested.end <= clock:
        return requested.end
    with suppress(OnceoverError):
        clock = max(clock, read_last_end(context.ledger, context.name) or clock)
    return clock
