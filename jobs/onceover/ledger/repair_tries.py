"""How a try to repair a window ends: published, left, no longer needed or failed; windows that fail too often are
blocked, and published ones announced to Airflow.

The rows of a repair are the outbox: whatever publishes a window, from Airflow, a shell or by a restore, writes its
revision there in the same transaction. A run of Airflow that dies between offer and mark leaves its windows to the next
run: each window is announced at least once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from psycopg.types.json import Jsonb

from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.findings import record_failed_scan
from onceover.ledger.repair_requests import EAGER, EAGER_WHY
from onceover.model.claim import ClaimedWindow
from onceover.model.finding import Finding
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.repair_failure import RepairFailure

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


def record_failed_try(
    connection: Connection,
    registered: RegisteredPipeline,
    claimed: ClaimedWindow,
    reason: str,
    max_tries: int,
    failures: Collection[RepairFailure] = (),
    findings: Iterable[Finding] = (),
    rebuilt: RebuiltWindow | None = None,
) -> bool:
    """Count a failed try; after `max_tries`, block the window with the reason. Returns whether it is blocked now."""
    with connection.transaction():
        row = connection.execute(
            """
            UPDATE onceover."window" SET tries = tries + 1, claimed_by = NULL, claimed_until = NULL,
              blocked_at = coalesce(blocked_at, CASE WHEN tries + 1 >= %(most)s THEN clock_timestamp() END),
              blocked_why = CASE WHEN tries + 1 >= %(most)s THEN %(reason)s ELSE blocked_why END
            WHERE pipeline = %(pipeline)s AND window_start = %(start)s AND token = %(token)s
            RETURNING tries
            """,
            {
                "most": max_tries,
                "reason": reason,
                "pipeline": registered.name,
                "start": claimed.window_start,
                "token": claimed.token,
            },
        ).fetchone()
        if row is None:
            return False  # the claim was lost: the repair that holds it judges the window
        blocked = bool(row["tries"] >= max_tries)
        finish_try(connection, claimed, "failed", reason, rebuilt, blocked=blocked, failures=failures)
        record_failed_scan(connection, registered.name, claimed.window_start, findings, rebuilt is not None)
    return blocked


def leave(connection: Connection, pipeline: str, claimed: ClaimedWindow, reason: str) -> None:
    """Give a window back that cannot be judged now; the next repair tries again, and no try is counted."""
    finish_try(connection, claimed, "left", reason)
    drop_claim(connection, pipeline, claimed)


def finish_try(
    connection: Connection,
    claimed: ClaimedWindow,
    state: str,
    reason: str | None,
    rebuilt: RebuiltWindow | None = None,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    blocked: bool = False,
    failures: Collection[RepairFailure] = (),
) -> None:
    """Record how the try ended, in the caller's transaction, unless a later run of the request has taken it over. After
    `unneeded`, as the window changed or its claim was lost, the window is judged again, and no try is counted."""
    connection.execute(
        """
        UPDATE onceover.repair SET state = %s, reason = %s, failures = %s, finished_at = clock_timestamp(),
          lines_read = %s, duplicates = %s, bytes_read = %s, before = %s, after = %s, blocked = %s
        WHERE repair_id = %s AND token = %s
        """,
        [
            state,
            reason,
            sorted(failures),
            rebuilt.lines if rebuilt else None,
            rebuilt.duplicates if rebuilt else None,
            rebuilt.frozen_length if rebuilt else None,
            Jsonb(before) if before else None,
            Jsonb(after) if after else None,
            blocked,
            claimed.repair_id,
            claimed.token,  # a later run of the same request writes its own outcome
        ],
    )


def drop_claim(connection: Connection, pipeline: str, claimed: ClaimedWindow) -> None:
    """Let the window go, unless another repair has claimed it since."""
    connection.execute(
        'UPDATE onceover."window" SET claimed_by = NULL, claimed_until = NULL '
        "WHERE pipeline = %s AND window_start = %s AND token = %s",
        [pipeline, claimed.window_start, claimed.token],
    )


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
