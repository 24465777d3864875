"""Published windows that Airflow has not heard of: offered to a run, and marked once that run's event was registered.

The rows of a repair are the outbox: whatever publishes a window, from Airflow, a shell or by a restore, writes its
revision there in the same transaction. A run that dies between both steps leaves its windows to the next run: each
window is announced at least once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onceover.ledger.database import Connection
from onceover.ledger.repair_requests import EAGER, EAGER_WHY

_WAITING = "r.announced_at IS NULL AND r.replaced_revision IS NOT NULL"

_VIA = f"""
  CASE WHEN q.dag_id IS NOT NULL THEN 'DAG' WHEN q.who = '{EAGER}' AND q.why = '{EAGER_WHY}'
    AND q.range_start IS NULL AND o.state <> 'restored' THEN 'ingest' ELSE 'command line' END"""

_OFFER = f"""
WITH waiting AS (
  SELECT r.repair_id FROM onceover.repair r JOIN onceover.pipeline p ON p.name = r.pipeline
  WHERE {_WAITING} ORDER BY r.repair_id LIMIT %(most)s FOR UPDATE OF r SKIP LOCKED),
offered AS (
  UPDATE onceover.repair r SET announced_in = %(run)s FROM waiting WHERE waiting.repair_id = r.repair_id
  RETURNING r.*)
SELECT o.pipeline, q.request_id, q.who, q.why, q.dag_id, q.run_id, o.state, {_VIA} AS via,
  o.window_start AS start, w.window_end AS "end",
  (o.after ->> 'revision')::integer AS revision, (o.before #>> '{{control,records}}')::bigint AS before,
  (o.after #>> '{{control,records}}')::bigint AS after
FROM offered o JOIN onceover.repair_request q USING (request_id)
JOIN onceover."window" w ON w.pipeline = o.pipeline AND w.window_start = o.window_start
ORDER BY o.pipeline, q.request_id, o.window_start
"""


def offer_published(connection: Connection, run: str, most: int) -> list[Mapping[str, Any]]:
    """Return at most `most` windows whose new rows were not announced, the earliest first, by pipeline and request.
    They count as offered to this run, and no others: an earlier try of the run may have died with its offer."""
    with connection.transaction():
        connection.execute(
            f"UPDATE onceover.repair r SET announced_in = NULL WHERE {_WAITING} AND r.announced_in = %s", [run]
        )
        return list(connection.execute(_OFFER, {"run": run, "most": most}))


def mark_announced(connection: Connection, run: str) -> int:
    """Mark what was last offered to this run as announced; return how many windows that are."""
    return connection.execute(
        f"UPDATE onceover.repair r SET announced_at = clock_timestamp() WHERE {_WAITING} AND r.announced_in = %s",
        [run],
    ).rowcount
