"""Deadlines: a pipeline's windows that should have been certified by now, each reported once."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.context import PipelineContext
from onceover.detection.overdue import OverdueWindow, report_overdue
from onceover.model.window import format_moment

_MAX_NAMED = 5


def list_overdue(context: PipelineContext) -> list[OverdueWindow]:
    """Return the windows that have missed the pipeline's deadline since the last call; none for a pipeline that has no
    deadline or has not run yet."""
    deadline_ms = context.pipeline.repair.deadline_ms
    if deadline_ms is None or not context.is_registered():
        return []
    return report_overdue(context.ledger, context.name, deadline_ms)


def describe_overdue(pipeline_name: str, windows: Sequence[OverdueWindow]) -> str:
    """Return one line for the person on call: the windows, what is wrong with them, and the command that shows it."""
    named = "; ".join(
        f"{format_moment(w.window_start)} is {w.state} ({w.blocked_why or ', '.join(w.findings) or 'not judged'})"
        for w in windows[:_MAX_NAMED]
    )
    more = f" and {len(windows) - _MAX_NAMED} more" if len(windows) > _MAX_NAMED else ""
    return (
        f"{pipeline_name}: {len(windows)} windows are not certified within their deadline: {named}{more}; see "
        f"`onceover explain {pipeline_name} {format_moment(windows[0].window_start)}`"
    )
