"""Windows and days of quarantine whose landed records raw has lost: what the last repair found, and their expiry by a
person's word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.compactions import list_substitutes
from onceover.ledger.database import Connection, in_snapshot
from onceover.ledger.expiries import OF_DAYS
from onceover.ledger.findings import resolve_findings
from onceover.ledger.frontiers import EXTRAS_ARE_SETTLED
from onceover.ledger.landings import read_landings
from onceover.ledger.restatements import RESTATED
from onceover.ledger.windows import lock_windows
from onceover.model.claim import ClaimedWindow
from onceover.model.offsets import KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class FailedRepair:
    """A window's last repair, which failed: `reason` says why, `failures` are its codes, `bytes_read` how long the file
    was, None if no reader got through it. Since it began nothing has landed in the window. `read_again` was appended
    before, but after raw last proved the window, and no repair since has found the file longer: else raw lost those
    lines too."""

    reason: str
    failures: tuple[str, ...]
    bytes_read: int | None
    started_at: datetime
    read_again: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class LostWindow:
    """A window at one version, of whose landed records raw lacks some: `what` says how one knows. One that
    `keeps_certificate` has lost its text alone, as if retention had moved it away: its rows are as certified."""

    window_start: datetime
    version: int
    records: int
    bytes: int
    what: str
    keeps_certificate: bool = False


def list_failed_repairs(connection: Connection, pipeline: str) -> dict[datetime, FailedRepair]:
    """Return the last repair of each window in which it failed, and nothing has landed since, in order."""
    rows = connection.execute(
        """
        SELECT w.window_start, r.reason, r.failures, r.bytes_read, r.started_at, (
            SELECT coalesce(jsonb_agg(jsonb_build_array(x.generation, x.kafka_partition, x.start_offset, x.end_offset)),
              '[]')
            FROM onceover.read_again x WHERE x.pipeline = w.pipeline AND x.window_start = w.window_start
              AND x.state = 'appended' AND x.finished_at < r.started_at
              AND NOT EXISTS (SELECT FROM onceover.certificate c WHERE c.pipeline = w.pipeline
                AND c.window_start = w.window_start AND c.created_at > x.finished_at)
              AND NOT EXISTS (SELECT FROM onceover.repair o WHERE o.pipeline = w.pipeline
                AND o.window_start = w.window_start AND o.started_at > x.finished_at
                AND o.bytes_read > coalesce(r.bytes_read, 0))) AS read_again
        FROM onceover."window" w CROSS JOIN LATERAL (
          SELECT * FROM onceover.repair WHERE pipeline = w.pipeline AND window_start = w.window_start
            AND state IN ('failed', 'published', 'confirmed', 'revoked', 'restored')
          ORDER BY repair_id DESC LIMIT 1) r
        WHERE w.pipeline = %s AND w.expired_at IS NULL AND w.tries > 0 AND r.state = 'failed' AND NOT EXISTS (
          SELECT FROM onceover.landing l JOIN onceover.batch b USING (batch_id)
          WHERE l.pipeline = w.pipeline AND l.window_start = w.window_start AND b.landed_at >= r.started_at)
        ORDER BY w.window_start
        """,
        [pipeline],
    )
    return {
        row["window_start"]: FailedRepair(
            row["reason"],
            tuple(row["failures"]),
            row["bytes_read"],
            row["started_at"],
            tuple(OffsetRange(KafkaPartition(g, p), start, end) for g, p, start, end in row["read_again"]),
        )
        for row in rows
    }


def list_as_certified(
    connection: Connection, registered: RegisteredPipeline, starts: Sequence[datetime]
) -> frozenset[datetime]:
    """Return those of these windows whose rows are as their last certificate states, if nothing has landed since, and
    nothing that it counts may still land."""
    rows = connection.execute(
        f"""
        SELECT w.window_start, c.contract_version, c.aggregate_rows, c.aggregate_hash
        FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
        WHERE w.pipeline = %s AND w.window_start = ANY(%s) AND c.aggregate_hash IS NOT NULL AND {EXTRAS_ARE_SETTLED}
          AND coalesce({RESTATED} <= c.contract_version, true)
          AND NOT EXISTS (SELECT FROM onceover.landing l WHERE l.pipeline = w.pipeline
            AND l.window_start = w.window_start AND l.landing_id > c.last_landing)
        """,
        [registered.name, list(starts)],
    ).fetchall()
    now = registered.read_fingerprints(connection, {row["window_start"]: row["contract_version"] for row in rows})
    return frozenset(
        row["window_start"]
        for row in rows
        if now[row["window_start"]] == Fingerprint(row["aggregate_rows"], row["aggregate_hash"])
    )


def expire_lost(
    connection: Connection, pipeline: str, lost: Sequence[LostWindow], who: str, why: str
) -> list[datetime]:
    """Mark those of these windows expired that have not changed since and that no repair holds; return their starts.

    Their rows stay as they are, and no reread judges them again. No certificate is valid for the new version of one
    that does not keep its own.
    """
    with connection.transaction():
        lock_windows(connection, pipeline, sorted(each.window_start for each in lost))
        expired: list[datetime] = []
        for each in lost:
            reason = f"declared by {who}, as raw has lost records of it ({each.what}): {why}"
            changed = connection.execute(
                """
                UPDATE onceover."window" SET expired_at = clock_timestamp(), expired_why = %s, version = version + %s,
                  tries = 0, blocked_at = NULL, blocked_why = NULL, kept_rows = NULL, kept_hash = NULL
                WHERE pipeline = %s AND window_start = %s AND version = %s AND expired_at IS NULL
                  AND coalesce(claimed_until < clock_timestamp(), true)
                """,
                [reason, int(not each.keeps_certificate), pipeline, each.window_start, each.version],
            )
            expired += [each.window_start] * changed.rowcount
        for start in expired:
            resolve_findings(connection, pipeline, start, "declared expired")
    return expired


def expire_days(connection: Connection, pipeline: str, days: Sequence[date], who: str, why: str) -> int:
    """Mark these days of quarantine expired, with nothing left to move away. Returns their number."""
    return connection.execute(
        f"""
        INSERT INTO onceover.expiry (pipeline, quarantine_day, last_landing, bytes, records, landed_at, who, why, state,
          finished_at)
        SELECT %(pipeline)s, quarantine_day, last_landing, bytes, records, landed_at, %(who)s, %(why)s, 'deleted',
          clock_timestamp()
        FROM ({OF_DAYS}) lost WHERE quarantine_day = ANY(%(days)s) ON CONFLICT DO NOTHING
        """,
        {"pipeline": pipeline, "days": list(days), "who": who, "why": why},
    ).rowcount


def lift_expiry(connection: Connection, pipeline: str, window_start: datetime) -> None:
    """Have a window judged again whose rows a rebuild of the ledger found without raw. Publishing compares the rows."""
    connection.execute(
        'UPDATE onceover."window" SET expired_at = NULL, version = version + 1 '
        "WHERE pipeline = %s AND window_start = %s AND kept_hash IS NOT NULL",
        [pipeline, window_start],
    )


def read_unclaimed(connection: Connection, pipeline: str, window_start: datetime) -> ClaimedWindow | None:
    """Return the window with its landings as a repair would claim it, without a claim; None if it is unknown, or has
    expired with its raw."""
    with in_snapshot(connection):
        row = connection.execute(
            """
            SELECT w.window_end, w.version,
              ARRAY(SELECT landing_id FROM onceover.landing l
                WHERE l.pipeline = w.pipeline AND l.window_start = w.window_start) AS landing_ids
            FROM onceover."window" w WHERE w.pipeline = %s AND w.window_start = %s
              AND (w.expired_at IS NULL OR w.kept_hash IS NOT NULL)
            """,
            [pipeline, window_start],
        ).fetchone()
        if row is None:
            return None
        return ClaimedWindow(
            repair_id=0,
            window_start=window_start,
            window_end=row["window_end"],
            token=UUID(int=0),
            version=row["version"],
            landings=tuple(read_landings(connection, row["landing_ids"]).values()),
            certified=None,
            compacted=list_substitutes(connection, pipeline, [window_start]).get(window_start),
        )
