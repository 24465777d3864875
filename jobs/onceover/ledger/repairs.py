"""Repairs in the ledger: requested, claimed, published in one transaction, failed, confirmed or revoked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover import __version__
from onceover.digest import Digest
from onceover.errors import FencedError, UsageError
from onceover.findings import Finding
from onceover.ledger.batches import accounted, digest_columns, digest_of
from onceover.ledger.catalog import Registered
from onceover.ledger.database import Connection
from onceover.ledger.windows import ranges_as_json, record_findings, resolve
from onceover.offsets import KafkaPartition, OffsetRange
from onceover.repair import CLAIM_SECONDS, Claimed, LandingOf, Rebuilt


@dataclass(frozen=True, slots=True)
class Request:
    """Who wants which windows repaired, and why."""

    request_id: int
    pipeline: str
    who: str
    why: str
    window_starts: tuple[datetime, ...]

    @property
    def stage(self) -> str:
        return f"request:{self.request_id}"


def request(
    connection: Connection,
    pipeline: str,
    who: str,
    why: str,
    windows: Mapping[datetime, Sequence[Finding]],
    *,
    unblock: bool = False,
) -> int:
    """Write down a repair request with its windows and what was found there; returns its id."""
    with connection.transaction():
        row = connection.execute(
            "INSERT INTO onceover.repair_request (pipeline, who, why) VALUES (%s, %s, %s) RETURNING request_id",
            [pipeline, who, why],
        ).fetchone()
        request_id = int(row["request_id"]) if row else 0
        for start, findings in sorted(windows.items()):
            connection.execute(
                "INSERT INTO onceover.repair (request_id, pipeline, window_start, findings) VALUES (%s, %s, %s, %s)",
                [request_id, pipeline, start, Jsonb([{"kind": str(f.kind), **f.evidence} for f in findings])],
            )
            record_findings(connection, pipeline, start, findings)
        if unblock:
            connection.execute(
                'UPDATE onceover."window" SET tries = 0, blocked_at = NULL, blocked_why = NULL '
                "WHERE pipeline = %s AND window_start = ANY(%s)",
                [pipeline, sorted(windows)],
            )
    return request_id


def read_request(connection: Connection, pipeline: str, request_id: int) -> Request:
    """The request with the windows that still wait for a repair; raises UsageError if there is no such request."""
    row = connection.execute(
        "SELECT who, why FROM onceover.repair_request WHERE request_id = %s AND pipeline = %s", [request_id, pipeline]
    ).fetchone()
    if row is None:
        raise UsageError(f"pipeline {pipeline} has no repair request {request_id}")
    starts = connection.execute(
        "SELECT window_start FROM onceover.repair WHERE request_id = %s AND state IN ('planned', 'claimed') "
        "ORDER BY window_start",
        [request_id],
    )
    return Request(request_id, pipeline, row["who"], row["why"], tuple(r["window_start"] for r in starts))


def claim(connection: Connection, wanted: Request) -> tuple[list[Claimed], tuple[OffsetRange, ...]]:
    """Claim the request's windows by compare-and-set, then read what their repair stands on, in one snapshot.

    Windows that somebody else holds, or that were certified since the request was made, are marked unneeded.
    """
    with connection.transaction():
        connection.execute(
            """
            SELECT 1 FROM onceover."window" WHERE pipeline = %s AND window_start = ANY(%s)
            ORDER BY window_start FOR UPDATE
            """,
            [wanted.pipeline, list(wanted.window_starts)],
        )
        connection.execute(
            """
            UPDATE onceover.repair r SET state = 'unneeded', finished_at = clock_timestamp(), reason = CASE
                WHEN c.certificate_id IS NOT NULL THEN 'certified meanwhile'
                ELSE 'being repaired by ' || w.claimed_by END
            FROM onceover."window" w JOIN onceover.repair_request q ON q.request_id = %(request)s
            LEFT JOIN onceover.certificate c
              ON c.certificate_id = w.certificate_id AND c.version = w.version AND c.created_at > q.created_at
            WHERE r.request_id = %(request)s AND r.state IN ('planned', 'claimed')
              AND w.pipeline = r.pipeline AND w.window_start = r.window_start
              AND (c.certificate_id IS NOT NULL
                OR (w.claimed_until >= clock_timestamp() AND w.claimed_by <> %(owner)s))
            """,
            {"request": wanted.request_id, "owner": wanted.stage},
        )
        connection.execute(
            """
            WITH taken AS (
              UPDATE onceover."window" w SET token = w.token + 1, claimed_by = %(owner)s,
                claimed_until = clock_timestamp() + make_interval(secs => %(seconds)s)
              FROM onceover.repair r
              WHERE r.request_id = %(request)s AND r.state IN ('planned', 'claimed')
                AND w.pipeline = r.pipeline AND w.window_start = r.window_start
              RETURNING r.repair_id, w.token)
            UPDATE onceover.repair r SET state = 'claimed', token = taken.token, started_at = clock_timestamp()
            FROM taken WHERE taken.repair_id = r.repair_id
            """,
            {"request": wanted.request_id, "owner": wanted.stage, "seconds": CLAIM_SECONDS},
        )
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return _claimed(connection, wanted.request_id), tuple(accounted(connection, wanted.pipeline))


def renew(connection: Connection, wanted: Request) -> None:
    """Keep the claims that are still ours for another while."""
    connection.execute(
        """
        UPDATE onceover."window" w SET claimed_until = clock_timestamp() + make_interval(secs => %(seconds)s)
        FROM onceover.repair r WHERE r.request_id = %(request)s AND r.state = 'claimed'
          AND w.pipeline = r.pipeline AND w.window_start = r.window_start AND w.token = r.token
        """,
        {"request": wanted.request_id, "seconds": CLAIM_SECONDS},
    )


def publish(
    connection: Connection,
    known: Registered,
    wanted: Request,
    claimed: Claimed,
    rebuilt: Rebuilt,
    findings: Iterable[Finding],
    ranges: Sequence[OffsetRange],
    frozen_length: int,
) -> bool:
    """Overwrite one window's aggregates with what raw says and certify it, all in one transaction.

    Checks token and version under the window's lock: a lost claim raises FencedError; a window that changed since the
    claim is left as it is and False comes back (its repair starts again next time). The rows that were there are kept
    as a revision. Rows that already are what raw says are not touched, only certified.
    """
    table, start = known.table, claimed.window_start
    with connection.transaction():
        row = connection.execute(
            'SELECT * FROM onceover."window" WHERE pipeline = %s AND window_start = %s FOR UPDATE', [known.name, start]
        ).fetchone()
        if row is None or row["token"] != claimed.token:
            raise FencedError(f"window {start:%Y-%m-%dT%H:%MZ}: the claim was lost to another repair")
        if row["version"] != claimed.version:
            _finish(connection, claimed, "failed", "the window changed during the repair; it is judged again")
            _release(connection, known.name, claimed)
            return False
        record_findings(connection, known.name, start, findings)
        staged = table.fingerprint(connection, start, wanted.stage)
        revision = int(row["revision"])
        before = {"control": digest_columns(digest_of(row)), "revision": revision}
        if table.fingerprint(connection, start) != staged:
            connection.execute(
                "INSERT INTO onceover.revision (pipeline, window_start, revision, repair_id, aggregates) "
                "VALUES (%s, %s, %s, %s, %s)",
                [known.name, start, revision, claimed.repair_id, Jsonb(table.rows(connection, start))],
            )
            revision += 1
            table.replace(connection, wanted.stage, start, revision)
        certificate = connection.execute(
            """
            INSERT INTO onceover.certificate (pipeline, window_start, window_end, version, basis, contract_version,
              code_version, landing_set, accounted, frozen_length, records, high1, low1, high2, low2,
              aggregate_rows, aggregate_hash, repair_id, who, why)
            VALUES (%(pipeline)s, %(start)s, %(end)s, %(version)s, 'raw', %(contract_version)s, %(code_version)s,
              %(landing_set)s, %(accounted)s, %(frozen_length)s, %(records)s, %(high1)s, %(low1)s, %(high2)s, %(low2)s,
              %(rows)s, %(hash)s, %(repair_id)s, %(who)s, %(why)s)
            RETURNING certificate_id
            """,
            {
                "pipeline": known.name,
                "start": start,
                "end": claimed.window_end,
                "version": claimed.version,
                "contract_version": known.contract_version,
                "code_version": __version__,
                "landing_set": list(claimed.landing_set),
                "accounted": Jsonb(ranges_as_json(ranges)),
                "frozen_length": frozen_length,
                **digest_columns(rebuilt.digest),
                "rows": staged.rows,
                "hash": staged.hash,
                "repair_id": claimed.repair_id,
                "who": wanted.who,
                "why": wanted.why,
            },
        ).fetchone()
        connection.execute(
            """
            UPDATE onceover."window" SET revision = %(revision)s, certificate_id = %(certificate)s, tries = 0,
              blocked_at = NULL, blocked_why = NULL, claimed_by = NULL, claimed_until = NULL,
              records = %(records)s, high1 = %(high1)s, low1 = %(low1)s, high2 = %(high2)s, low2 = %(low2)s
            WHERE pipeline = %(pipeline)s AND window_start = %(start)s
            """,
            {
                "revision": revision,
                "certificate": certificate["certificate_id"] if certificate else None,
                "pipeline": known.name,
                "start": start,
                **digest_columns(rebuilt.digest),
            },
        )
        after = {"control": digest_columns(rebuilt.digest), "revision": revision}
        _finish(connection, claimed, "published", None, rebuilt, frozen_length, before, after)
        resolve(connection, known.name, start, f"repaired from raw by repair {claimed.repair_id}")
    return True


def fail(
    connection: Connection,
    known: Registered,
    claimed: Claimed,
    reason: str,
    max_tries: int,
    findings: Iterable[Finding] = (),
    rebuilt: Rebuilt | None = None,
    frozen_length: int | None = None,
) -> bool:
    """Count a failed try; after `max_tries` the window is blocked, with the reason. Returns whether it is now."""
    with connection.transaction():
        row = connection.execute(
            """
            UPDATE onceover."window" SET tries = tries + 1, claimed_by = NULL, claimed_until = NULL,
              blocked_at = CASE WHEN tries + 1 >= %(most)s THEN coalesce(blocked_at, clock_timestamp()) END,
              blocked_why = CASE WHEN tries + 1 >= %(most)s THEN %(reason)s END
            WHERE pipeline = %(pipeline)s AND window_start = %(start)s AND token = %(token)s
            RETURNING tries
            """,
            {
                "most": max_tries,
                "reason": reason,
                "pipeline": known.name,
                "start": claimed.window_start,
                "token": claimed.token,
            },
        ).fetchone()
        blocked = bool(row and row["tries"] >= max_tries)
        _finish(connection, claimed, "failed", reason, rebuilt, frozen_length, blocked=blocked)
        for finding in findings:
            connection.execute(
                """
                INSERT INTO onceover.finding (pipeline, window_start, kind, evidence) VALUES (%s, %s, %s, %s)
                ON CONFLICT (pipeline, window_start, kind) WHERE resolved_at IS NULL
                DO UPDATE SET evidence = excluded.evidence, last_seen_at = now()
                """,
                [known.name, claimed.window_start, str(finding.kind), Jsonb(dict(finding.evidence))],
            )
    return blocked


def release(connection: Connection, wanted: Request) -> None:
    """Let go of the claims of a request that ends early; a window of its own tries again next time."""
    connection.execute(
        """
        UPDATE onceover."window" w SET claimed_by = NULL, claimed_until = NULL FROM onceover.repair r
        WHERE r.request_id = %s AND w.pipeline = r.pipeline AND w.window_start = r.window_start AND w.token = r.token
        """,
        [wanted.request_id],
    )


def confirm(connection: Connection, known: Registered, request_id: int) -> list[Mapping[str, object]]:
    """Re-read what a request published; a difference revokes the certificate. Returns the request's repairs.

    A window that changed since (a late record) is left to the next detection, which judges it anew.
    """
    with connection.transaction():
        rows = connection.execute(
            """
            SELECT r.repair_id, r.window_start, c.certificate_id, c.aggregate_rows, c.aggregate_hash
            FROM onceover.repair r JOIN onceover.certificate c ON c.repair_id = r.repair_id
            JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
              AND w.version = c.version AND w.certificate_id = c.certificate_id
            WHERE r.request_id = %s AND r.pipeline = %s AND r.state = 'published' ORDER BY r.window_start FOR UPDATE OF w
            """,
            [request_id, known.name],
        ).fetchall()
        for row in rows:
            found = known.table.fingerprint(connection, row["window_start"])
            same = (found.rows, found.hash) == (row["aggregate_rows"], row["aggregate_hash"])
            connection.execute(
                "UPDATE onceover.repair SET state = %s, reason = %s WHERE repair_id = %s",
                [
                    "confirmed" if same else "revoked",
                    None if same else f"re-read {found.rows} rows that differ from the {row['aggregate_rows']} published",
                    row["repair_id"],
                ],
            )
            if not same:
                revoke(connection, known.name, row["certificate_id"], "what was re-read differs from what was published")
    return list(
        connection.execute(
            "SELECT window_start, state, reason, blocked, duplicates, lines_read, findings FROM onceover.repair "
            "WHERE request_id = %s AND pipeline = %s ORDER BY window_start",
            [request_id, known.name],
        )
    )


def revoke(connection: Connection, pipeline: str, certificate_id: int, why: str) -> None:
    """A certificate no longer stands: its window is judged from its landings alone, so a repair follows."""
    connection.execute(
        "UPDATE onceover.certificate SET revoked_at = now(), revoked_why = %s WHERE certificate_id = %s",
        [why, certificate_id],
    )
    connection.execute(
        'UPDATE onceover."window" SET certificate_id = NULL, version = version + 1, records = 0, high1 = 0, low1 = 0, '
        "high2 = 0, low2 = 0 WHERE pipeline = %s AND certificate_id = %s",
        [pipeline, certificate_id],
    )


def _claimed(connection: Connection, request_id: int) -> list[Claimed]:
    rows = connection.execute(
        """
        SELECT r.repair_id, r.window_start, w.window_end, w.token, w.version, c.certificate_id, c.records, c.high1,
          c.low1, c.high2, c.low2, coalesce(c.frozen_length, 0) AS frozen_length
        FROM onceover.repair r JOIN onceover."window" w ON w.pipeline = r.pipeline AND w.window_start = r.window_start
        LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
        WHERE r.request_id = %s AND r.state = 'claimed' AND w.token = r.token ORDER BY r.window_start
        """,
        [request_id],
    ).fetchall()
    parts = connection.execute(
        """
        SELECT r.window_start, l.landing_id, p.generation, p.kafka_partition, b.start_offset, b.end_offset,
          p.records, p.high1, p.low1, p.high2, p.low2
        FROM onceover.repair r
        JOIN onceover.landing l ON l.pipeline = r.pipeline AND l.window_start = r.window_start
        JOIN onceover.landing_part p USING (landing_id)
        JOIN onceover.batch_range b ON b.batch_id = l.batch_id AND b.generation = p.generation
          AND b.kafka_partition = p.kafka_partition
        WHERE r.request_id = %s AND r.state = 'claimed' ORDER BY l.landing_id
        """,
        [request_id],
    )
    landings: dict[datetime, dict[int, list[tuple[OffsetRange, Digest]]]] = {}
    for p in parts:
        offsets = OffsetRange(KafkaPartition(p["generation"], p["kafka_partition"]), p["start_offset"], p["end_offset"])
        landings.setdefault(p["window_start"], {}).setdefault(p["landing_id"], []).append((offsets, digest_of(p)))
    return [
        Claimed(
            repair_id=row["repair_id"],
            window_start=row["window_start"],
            window_end=row["window_end"],
            token=row["token"],
            version=row["version"],
            landings=tuple(LandingOf(k, tuple(v)) for k, v in landings.get(row["window_start"], {}).items()),
            certified=digest_of(row) if row["certificate_id"] is not None else None,
            certificate_frozen_length=row["frozen_length"],
        )
        for row in rows
    ]


def _finish(
    connection: Connection,
    claimed: Claimed,
    state: str,
    reason: str | None,
    rebuilt: Rebuilt | None = None,
    frozen_length: int | None = None,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    blocked: bool = False,
) -> None:
    connection.execute(
        """
        UPDATE onceover.repair SET state = %s, reason = %s, finished_at = clock_timestamp(), lines_read = %s,
          duplicates = %s, bytes_read = %s, before = %s, after = %s, blocked = %s WHERE repair_id = %s
        """,
        [
            state,
            reason,
            rebuilt.lines if rebuilt else None,
            rebuilt.duplicates if rebuilt else None,
            frozen_length,
            Jsonb(before) if before else None,
            Jsonb(after) if after else None,
            blocked,
            claimed.repair_id,
        ],
    )


def _release(connection: Connection, pipeline: str, claimed: Claimed) -> None:
    connection.execute(
        'UPDATE onceover."window" SET claimed_by = NULL, claimed_until = NULL '
        "WHERE pipeline = %s AND window_start = %s AND token = %s",
        [pipeline, claimed.window_start, claimed.token],
    )
