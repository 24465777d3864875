"""Windows that are not certified within their deadline, each reported once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onceover.ledger.database import Connection
from onceover.ledger.windows import STATE, lock_windows


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
