"""Deadlines: which windows of a pipeline should have been certified by now, told once."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.context import PipelineContext
from onceover.detection.overdue import Overdue, tell_overdue
from onceover.model.window import format_moment

_MOST_NAMED = 5


def overdue(context: PipelineContext) -> list[Overdue]:
    """Windows that have missed the pipeline's deadline since this was asked last; none where it has no deadline, or has
    not run yet."""
    deadline_ms = context.pipeline.repair.deadline_ms
    if deadline_ms is None or not context.is_registered():
        return []
    return tell_overdue(context.ledger, context.name, deadline_ms)


def describe_overdue(pipeline_name: str, windows: Sequence[Overdue]) -> str:
    """One line for whoever is on call: which windows, what is wrong with them, and the command that shows it."""
    named = "; ".join(
        f"{format_moment(one.window_start)} is {one.state} "
        f"({one.blocked_why or ', '.join(one.findings) or 'not judged'})"
        for one in windows[:_MOST_NAMED]
    )
    more = f" and {len(windows) - _MOST_NAMED} more" if len(windows) > _MOST_NAMED else ""
    return (
        f"{pipeline_name}: {len(windows)} windows are not certified within their deadline: {named}{more}; see "
        f"`onceover explain {pipeline_name} {format_moment(windows[0].window_start)}`"
    )
