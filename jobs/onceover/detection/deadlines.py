"""Deadlines: which windows of a pipeline should have been certified by now, told once."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.context import PipelineContext
from onceover.detection.overdue import OverdueWindow, report_overdue
from onceover.model.window import written

_MOST_NAMED = 5


def list_overdue(context: PipelineContext) -> list[OverdueWindow]:
    """Windows that have missed the pipeline's deadline since this was asked last; none where it has no deadline, or has
    not run yet."""
    deadline_ms = context.pipeline.repair.deadline_ms
    if deadline_ms is None or not context.is_registered():
        return []
    return report_overdue(context.ledger, context.name, deadline_ms)


def describe_overdue(pipeline_name: str, windows: Sequence[OverdueWindow]) -> str:
    """One line for whoever is on call: which windows, what is wrong with them, and the command that shows it."""
    named = "; ".join(
        f"{written(one.window_start)} is {one.state} ({one.blocked_why or ', '.join(one.findings) or 'not judged'})"
        for one in windows[:_MOST_NAMED]
    )
    more = f" and {len(windows) - _MOST_NAMED} more" if len(windows) > _MOST_NAMED else ""
    return (
        f"{pipeline_name}: {len(windows)} windows are not certified within their deadline: {named}{more}; see "
        f"`onceover explain {pipeline_name} {written(windows[0].window_start)}`"
    )
