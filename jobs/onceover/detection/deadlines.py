"""Deadlines: a pipeline's windows that should have been certified by now, each reported once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from onceover.context import PipelineContext
from onceover.ledger.database import Connection
from onceover.ledger.windows import STATE, lock_windows
from onceover.model.window import format_moment
from onceover.model.windowing import Windowing

_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class OverdueWindow:
    """A window past its deadline, with its state and open findings."""

    window_start: datetime
    state: str
    findings: tuple[str, ...]
    blocked_why: str | None


# Each batch is looked up by its key: the landings of uncertified windows are few, and the planner cannot know it.
_LATE = """
  SELECT w.window_start FROM onceover."window" w
  WHERE w.pipeline = %(pipeline)s AND w.expired_at IS NULL AND w.overdue_reported_at IS NULL AND NOT w.is_certified
    AND (SELECT max((SELECT b.landed_at FROM onceover.batch b WHERE b.batch_id = l.batch_id)) FROM onceover.landing l
      WHERE l.pipeline = w.pipeline AND l.window_start = w.window_start)
      < clock_timestamp() - make_interval(secs => %(seconds)s)"""


def report_overdue(connection: Connection, pipeline: str, deadline_ms: int) -> list[OverdueWindow]:
    """Return windows without a valid certificate whose last record landed longer ago than the deadline, open ones
    included: a fault may keep a window open. Each is marked as reported and left out from now on, until certified."""
    with connection.transaction():
        late = connection.execute(_LATE, {"pipeline": pipeline, "seconds": deadline_ms / 1000})
        starts = [row["window_start"] for row in late]
        lock_windows(connection, pipeline, starts)  # in the order that every writer locks windows in
        rows = connection.execute(
            f"""
            WITH reported AS (
              UPDATE onceover."window" u SET overdue_reported_at = clock_timestamp()
              WHERE u.pipeline = %(pipeline)s AND u.window_start = ANY(%(starts)s) AND u.overdue_reported_at IS NULL
              RETURNING u.pipeline, u.window_start)
            SELECT w.window_start, {STATE} AS state, w.blocked_why,
              ARRAY(SELECT f.kind FROM onceover.finding f WHERE f.pipeline = w.pipeline
                AND f.window_start = w.window_start AND f.resolved_at IS NULL ORDER BY f.kind) AS findings
            FROM reported JOIN onceover."window" w USING (pipeline, window_start)
            JOIN onceover.pipeline p ON p.name = w.pipeline
            ORDER BY w.window_start
            """,
            {"pipeline": pipeline, "starts": starts},
        ).fetchall()
    return [OverdueWindow(r["window_start"], r["state"], tuple(r["findings"]), r["blocked_why"]) for r in rows]


def list_overdue(context: PipelineContext) -> list[OverdueWindow]:
    """Return the windows that have missed the pipeline's deadline since the last call; none for a pipeline that has no
    deadline or has not run yet."""
    deadline_ms = context.pipeline.repair.deadline_ms
    if deadline_ms is None or not context.is_registered():
        return []
    return report_overdue(context.ledger, context.name, deadline_ms)


def describe_overdue(pipeline_name: str, windows: Sequence[OverdueWindow], windowing: Windowing) -> str:
    """Return one line for the person on call: the windows, what is wrong with them, and the command that shows it."""
    named = "; ".join(
        f"{windowing.show(w.window_start)} is {w.state} ({w.blocked_why or ', '.join(w.findings) or 'not judged'})"
        for w in windows[:_MAX_NAMED]
    )
    more = f" and {len(windows) - _MAX_NAMED} more" if len(windows) > _MAX_NAMED else ""
    return (
        f"{pipeline_name}: {len(windows)} windows are not certified within their deadline: {named}{more}; see "
        f"`onceover explain {pipeline_name} {format_moment(windows[0].window_start)}`"
    )
