"""The claims under which one repair works on its windows: a token of each, for 60 s at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final
from uuid import UUID

from psycopg import sql

from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.columns import parse_spans, read_digest
from onceover.ledger.compactions import COMPACTED_COLUMNS, parse_compacted
from onceover.ledger.database import Connection, in_snapshot
from onceover.ledger.extras import list_landed_extras
from onceover.ledger.landed_offsets import read_accounted
from onceover.ledger.landings import read_landings
from onceover.ledger.repair_requests import RepairRequest
from onceover.ledger.windows import LOG_UNTIL, lock_windows
from onceover.model.claim import CLAIM_SECONDS, ClaimedWindow
from onceover.model.offsets import OffsetRange

_UNCOMPARED: Final = (
    "Kafka's log was not compared with what landed yet: repair again while it can be read, or ingest runs"
)


def claim(
    connection: Connection, request: RepairRequest, *, is_compared: bool = True
) -> tuple[list[ClaimedWindow], tuple[OffsetRange, ...]]:
    """Claim the request's windows by compare-and-set, then read the evidence for their repair in one snapshot. Windows
    whose records leave Kafka's log first come first.

    Windows that another repair holds are left to it, and all are while the log has still to be compared with what
    landed. Windows that were certified, blocked or expired since the request
    are marked unneeded.
    """
    with connection.transaction():
        lock_windows(connection, request.pipeline, request.window_starts)
        connection.execute(
            """
            UPDATE onceover.repair r SET finished_at = clock_timestamp(),
              state = CASE WHEN c.certificate_id IS NULL AND w.blocked_at IS NULL AND w.expired_at IS NULL
                THEN 'left'
                ELSE 'unneeded' END,
              reason = CASE WHEN c.certificate_id IS NOT NULL THEN 'certified meanwhile'
                WHEN w.expired_at IS NOT NULL THEN 'expired: its raw is gone'
                WHEN w.blocked_at IS NOT NULL THEN 'blocked meanwhile: ' || w.blocked_why
                WHEN NOT %(compared)s THEN %(uncompared)s
                ELSE 'being repaired by ' || w.claimed_by END
            FROM onceover."window" w JOIN onceover.repair_request q ON q.request_id = %(request)s
            LEFT JOIN onceover.certificate c
              ON c.certificate_id = w.certificate_id AND c.version = w.version AND c.created_at > q.created_at
            WHERE r.request_id = %(request)s AND r.state IN ('planned', 'claimed')
              AND r.window_start = ANY(%(starts)s)
              AND w.pipeline = r.pipeline AND w.window_start = r.window_start
              AND (c.certificate_id IS NOT NULL OR w.blocked_at IS NOT NULL OR w.expired_at IS NOT NULL
                OR NOT %(compared)s OR (w.claimed_until >= clock_timestamp() AND w.claimed_by <> %(owner)s))
            """,
            {
                "request": request.request_id,
                "starts": list(request.window_starts),
                "owner": request.owner,
                "compared": is_compared,
                "uncompared": _UNCOMPARED,
            },
        )
        connection.execute(
            """
            WITH taken AS (
              UPDATE onceover."window" w SET token = gen_random_uuid(), claimed_by = %(owner)s,
                claimed_until = clock_timestamp() + make_interval(secs => %(seconds)s)
              FROM onceover.repair r
              WHERE r.request_id = %(request)s AND r.state IN ('planned', 'claimed')
                AND r.window_start = ANY(%(starts)s)
                AND w.pipeline = r.pipeline AND w.window_start = r.window_start
              RETURNING r.repair_id, w.token)
            UPDATE onceover.repair r SET state = 'claimed', token = taken.token, started_at = clock_timestamp()
            FROM taken WHERE taken.repair_id = r.repair_id
            """,
            {
                "request": request.request_id,
                "starts": list(request.window_starts),
                "owner": request.owner,
                "seconds": CLAIM_SECONDS,
            },
        )
    with in_snapshot(connection):
        return _read_claimed(connection, request), tuple(read_accounted(connection, request.pipeline))


def renew(connection: Connection, pipeline: str, claimed: Sequence[ClaimedWindow]) -> None:
    """Renew those of these claims that are still ours, for CLAIM_SECONDS."""
    _hold(connection, pipeline, claimed, CLAIM_SECONDS)


def drop_claims(connection: Connection, pipeline: str, claimed: Sequence[ClaimedWindow]) -> None:
    """Drop those of these claims that are still ours; a later repair may claim the windows."""
    _hold(connection, pipeline, claimed, None)


def _hold(connection: Connection, pipeline: str, claimed: Sequence[ClaimedWindow], seconds: float | None) -> None:
    starts = [window.window_start for window in claimed]
    with connection.transaction():
        lock_windows(connection, pipeline, starts)
        connection.execute(
            """
            UPDATE onceover."window" w SET claimed_by = CASE WHEN %(seconds)s::float IS NOT NULL THEN w.claimed_by END,
              claimed_until = clock_timestamp() + make_interval(secs => %(seconds)s)
            FROM unnest(%(starts)s::timestamptz[], %(tokens)s::uuid[]) AS own (window_start, token)
            WHERE w.pipeline = %(pipeline)s AND w.window_start = own.window_start AND w.token = own.token
              AND w.claimed_by IS NOT NULL
            """,
            {
                "seconds": seconds,
                "pipeline": pipeline,
                "starts": starts,
                "tokens": [window.token for window in claimed],
            },
        )


def _read_claimed(connection: Connection, request: RepairRequest) -> list[ClaimedWindow]:
    given = [request.request_id, list(request.window_starts)]
    rows = connection.execute(
        f"""
        SELECT r.repair_id, r.window_start, w.window_end, w.token, w.version, w.by_value,
          c.certificate_id, c.extras, c.records, c.high1, c.low1, c.high2, c.low2, {COMPACTED_COLUMNS}
        FROM onceover.repair r JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
        JOIN onceover.pipeline p ON p.name = r.pipeline
        LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
        WHERE r.request_id = %s AND r.window_start = ANY(%s) AND r.state = 'claimed' AND w.token = r.token
        ORDER BY {LOG_UNTIL} NULLS LAST, r.window_start
        """,
        given,
    ).fetchall()
    ids = connection.execute(
        """
        SELECT r.window_start, array_agg(l.landing_id ORDER BY l.landing_id) AS landing_ids FROM onceover.repair r
        JOIN onceover.landing l ON l.pipeline = r.pipeline AND l.window_start = r.window_start
        WHERE r.request_id = %s AND r.window_start = ANY(%s) AND r.state = 'claimed' GROUP BY 1
        """,
        given,
    ).fetchall()
    by_id = read_landings(connection, chain.from_iterable(row["landing_ids"] for row in ids))
    by_window = {row["window_start"]: tuple(by_id[landing_id] for landing_id in row["landing_ids"]) for row in ids}
    extras = {row["window_start"]: parse_spans(row["extras"] or ()) for row in rows}
    landed = list_landed_extras(connection, request.pipeline, extras)

    def count_movable(row: Mapping[str, Any]) -> int:
        """Count the extras of the last certificate that landed since, or may get another event time from VALUE."""
        movable = (extras if row["by_value"] else landed).get(row["window_start"], ())
        return sum(len(each.offsets) for each in movable)

    return [
        ClaimedWindow(
            repair_id=row["repair_id"],
            window_start=row["window_start"],
            window_end=row["window_end"],
            token=row["token"],
            version=row["version"],
            landings=by_window.get(row["window_start"], ()),
            certified=read_digest(row) if row["certificate_id"] is not None else None,
            may_go=count_movable(row),
            compacted=parse_compacted(row),
            by_value=row["by_value"],
        )
        for row in rows
    ]


def read_unclaimed(connection: Connection, pipeline: str, starts: Sequence[datetime]) -> list[ClaimedWindow]:
    """Return the evidence for these windows as for their repair, in order, without a claim: for a preview."""
    rows = connection.execute(
        f"""
        SELECT w.window_start, w.window_end, w.version, {COMPACTED_COLUMNS},
          ARRAY(SELECT landing_id FROM onceover.landing l WHERE l.pipeline = w.pipeline
            AND l.window_start = w.window_start ORDER BY 1) AS landing_ids
        FROM onceover."window" w WHERE w.pipeline = %s AND w.window_start = ANY(%s) ORDER BY 1
        """,
        [pipeline, list(starts)],
    ).fetchall()
    by_id = read_landings(connection, chain.from_iterable(row["landing_ids"] for row in rows))
    return [
        ClaimedWindow(
            repair_id=0,
            window_start=row["window_start"],
            window_end=row["window_end"],
            token=UUID(int=0),
            version=row["version"],
            landings=tuple(by_id[landing_id] for landing_id in row["landing_ids"]),
            certified=None,
            compacted=parse_compacted(row),
        )
        for row in rows
    ]


def clear_dead_stages(connection: Connection, registered: RegisteredPipeline) -> None:
    """Delete the rows that killed repairs and audits have staged: those of requests without a claim that is alive, and
    of audits that were asked for more than a day ago."""
    name, staging = registered.name, registered.table.staging
    stages = connection.execute(sql.SQL("SELECT DISTINCT _stage FROM {}").format(staging)).fetchall()
    own = [row["_stage"] for row in stages if row["_stage"].startswith(("request:", "audit:"))]
    if not own:
        return
    # Read after the stages: a repair claims its windows before it stages their rows.
    alive = connection.execute(
        """
        SELECT DISTINCT claimed_by AS owner FROM onceover."window"
        WHERE pipeline = %(name)s AND claimed_until >= clock_timestamp()
        UNION ALL SELECT 'audit:' || action_id FROM onceover.action WHERE pipeline = %(name)s AND kind LIKE 'audit%%'
          AND created_at > now() - interval '1 day'
        """,
        {"name": name},
    ).fetchall()
    owners = {row["owner"] for row in alive}
    dead = [stage for stage in own if ":".join(stage.split(":")[:2]) not in owners]
    connection.execute(sql.SQL("DELETE FROM {} WHERE _stage = ANY(%s)").format(staging), [dead])
