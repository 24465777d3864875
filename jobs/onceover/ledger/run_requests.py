"""Repair requests as a page follows them: of a run or by number, and how far each of their windows is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onceover.ledger.database import Connection
from onceover.ledger.windows import STATE

_REQUEST = "SELECT request_id, pipeline, who, why, created_at, dag_id, run_id FROM onceover.repair_request"

_WINDOWS = f"""
SELECT r.window_start AS start, w.window_end AS "end", r.state, r.reason, r.finished_at, r.blocked,
  (r.before #>> '{{control,records}}')::bigint AS before, (r.after #>> '{{control,records}}')::bigint AS after,
  {STATE} AS window_state
FROM onceover.repair r JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
JOIN onceover.pipeline p ON p.name = w.pipeline
WHERE r.request_id = %s
ORDER BY CASE WHEN r.state IN ('failed', 'revoked') THEN 0 WHEN r.state IN ('planned', 'claimed', 'published') THEN 1
  ELSE 2 END, r.window_start LIMIT %s
"""

_COUNTS = f"""
SELECT r.state, {STATE} = 'certified' AS is_certified, count(*) AS n
FROM onceover.repair r JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
JOIN onceover.pipeline p ON p.name = w.pipeline
WHERE r.request_id = %s GROUP BY 1, 2
"""


def find_run_requests(connection: Connection, dag_id: str, run_id: str) -> list[Mapping[str, Any]]:
    """Return the repair requests that a run of Airflow made, one a pipeline and try, the newest last."""
    return list(
        connection.execute(f"{_REQUEST} WHERE dag_id = %s AND run_id = %s ORDER BY request_id", [dag_id, run_id])
    )


def find_request(connection: Connection, request_id: int) -> Mapping[str, Any] | None:
    """Return a repair request, None for an unknown number."""
    return connection.execute(f"{_REQUEST} WHERE request_id = %s", [request_id]).fetchone()


def list_requested_windows(connection: Connection, request_id: int, limit: int) -> list[Mapping[str, Any]]:
    """Return the request's windows: failed ones first, then those that wait, then the rest."""
    return list(connection.execute(_WINDOWS, [request_id, limit]))


def count_requested_windows(connection: Connection, request_id: int) -> list[Mapping[str, Any]]:
    """Count the request's windows by their repair's `state` and by whether they are certified now."""
    return list(connection.execute(_COUNTS, [request_id]))
