"""How a try to repair a window ends: published, left, no longer needed or failed; windows that fail too often are
blocked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from psycopg.types.json import Jsonb

from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.findings import record_failed_scan
from onceover.model.claim import ClaimedWindow
from onceover.model.finding import Finding
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.repair_failure import RepairFailure


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
