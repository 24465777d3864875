"""Ranges of windows, from the times on the command line."""

from __future__ import annotations

from onceover.cli.output import print_progress
from onceover.context import PipelineContext
from onceover.detection.future_range import cut_future_range, reject_future_range
from onceover.errors import UsageError
from onceover.model.window import WindowRange


def resolve_range(context: PipelineContext, start: str, end: str) -> WindowRange:
    """Return the range of windows. Raises UsageError for one that is not aligned, is empty or ends in the future."""
    return reject_future_range(context, context.windowing.parse_range(start, end))


def resolve_range_until_now(context: PipelineContext, start: str, end: str) -> WindowRange:
    """Return the range of windows, without those in the future, and say so. Raises UsageError for one that is not
    aligned, is empty or begins in the future."""
    requested = context.windowing.parse_range(start, end)
    chosen = cut_future_range(context, requested)
    if chosen.end < requested.end:
        print_progress(f"the range ends in the future: it is cut at {context.windowing.show(chosen.end)}")
    return chosen


def resolve_range_if_any(context: PipelineContext, start: str | None, end: str | None) -> WindowRange | None:
    """Return the range, None without both ends. Raises UsageError for half a range."""
    if (start is None) != (end is None):
        raise UsageError("half a range is named; give both --from and --to, or neither for all windows")
    return resolve_range(context, start, end) if start and end else None
