"""Windows in the ledger: their states, lists and counts, and their locking order, which avoids deadlocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from onceover.errors import BusyError
from onceover.ledger.database import Connection
from onceover.model.finding_kinds import RAW_DAMAGE
from onceover.model.offsets import KafkaPartition

MAX_LOCKED = 200


class WindowState(StrEnum):
    """The state of a window; each window has exactly one."""

    OPEN = "open"
    CLOSED = "closed"
    FAILED = "failed"
    REPAIRING = "repairing"
    BLOCKED = "blocked"
    CERTIFIED = "certified"
    DAMAGED = "damaged"
    EXPIRED = "expired"


_OPEN_FINDING = """
  EXISTS (SELECT 1 FROM onceover.finding f WHERE f.pipeline = w.pipeline AND f.window_start = w.window_start
    AND f.resolved_at IS NULL"""
# Of window w, whatever its certificate: an open finding says that raw is damaged.
_DAMAGE = ", ".join(f"'{kind}'" for kind in sorted(RAW_DAMAGE))
RAW_IS_DAMAGED = f"{_OPEN_FINDING} AND f.kind IN ({_DAMAGE}))"


# Of "window" w, with its pipeline p.
STATE = f"""
  CASE WHEN w.expired_at IS NOT NULL THEN 'expired'
    WHEN w.blocked_at IS NOT NULL THEN 'blocked'
    WHEN w.claimed_until >= clock_timestamp() THEN 'repairing'
    WHEN w.is_certified THEN CASE WHEN {RAW_IS_DAMAGED} THEN 'damaged' ELSE 'certified' END
    WHEN NOT (p.every_window_closed OR coalesce(w.window_end <= p.watermark, false)) THEN 'open'
    WHEN {_OPEN_FINDING}) THEN 'failed'
    ELSE 'closed' END"""


WITHIN = """
  (%(start)s::timestamptz IS NULL OR w.window_start >= %(start)s)
    AND (%(end)s::timestamptz IS NULL OR w.window_start < %(end)s)"""
"""Whether window w is in the range from `start` to before `end`, each without a bound if it is NULL."""


# Joins window w with the taking t by which a person works on it, if one does.
WITH_TAKING = """
  LEFT JOIN onceover.action t ON t.action_id = w.taking_id AND w.expired_at IS NULL"""


# Windows that may have any other state than certified or expired: indices name them, however many windows there are.
UNSETTLED = """
  SELECT window_start FROM onceover."window" WHERE pipeline = %(pipeline)s
    AND (NOT is_certified OR blocked_at IS NOT NULL OR claimed_until IS NOT NULL) AND expired_at IS NULL
  UNION SELECT f.window_start FROM onceover.finding f JOIN onceover."window" w USING (pipeline, window_start)
  WHERE f.pipeline = %(pipeline)s AND f.resolved_at IS NULL AND w.expired_at IS NULL"""
_SETTLED = frozenset({WindowState.CERTIFIED, WindowState.EXPIRED})


# Until when Kafka still holds every record of a window, by its topic's retention; NULL: for ever, or unknown.
LOG_UNTIL = "w.oldest_record + p.log_retention"


def list_untried(connection: Connection, pipeline: str, rest: timedelta, limit: int) -> list[datetime]:
    """Return at most `limit` closed windows, the earliest first, that are neither certified, blocked nor expired, whose
    repair never failed, and was not requested within the last `rest`."""
    rows = connection.execute(
        """
        SELECT w.window_start FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
        WHERE w.pipeline = %s AND NOT w.is_certified AND w.blocked_at IS NULL AND w.expired_at IS NULL AND w.tries = 0
          AND (p.every_window_closed OR w.window_end <= p.watermark)
          AND NOT EXISTS (
            SELECT FROM onceover.repair r JOIN onceover.repair_request q USING (request_id)
            WHERE r.pipeline = w.pipeline AND r.window_start = w.window_start
              AND q.created_at > clock_timestamp() - %s::interval)
        ORDER BY w.window_start LIMIT %s
        """,
        [pipeline, rest, limit],
    )
    return [row["window_start"] for row in rows]


def list_windows(
    connection: Connection,
    pipeline: str,
    state: WindowState | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> list[Mapping[str, Any]]:
    """Return windows in order, each with its state, counted records, certificate's basis, open findings and holder."""
    key: dict[str, object] = {"pipeline": pipeline, "start": start, "end": end, "state": state}
    unsettled = ""
    if state and state not in _SETTLED:  # listed first: as a subquery, the planner may read every window for them
        unsettled = "AND w.window_start = ANY(%(unsettled)s)"
        key["unsettled"] = [row["window_start"] for row in connection.execute(UNSETTLED, key)]
    return list(
        connection.execute(
            f"""
            SELECT * FROM (
              SELECT w.window_start, w.window_end, {STATE} AS state, w.records, w.version, w.revision, c.basis,
                c.verdict, {LOG_UNTIL} AS log_until,
                c.records AS certified_records, c.created_at AS certified_at, w.tries, w.blocked_why, w.expired_why,
                w.kept_hash IS NOT NULL AS rows_without_raw,
                ARRAY(SELECT f.kind FROM onceover.finding f WHERE f.pipeline = w.pipeline
                  AND f.window_start = w.window_start AND f.resolved_at IS NULL ORDER BY f.kind) AS findings,
                t.who AS taken_by, t.detail ->> 'ticket' AS ticket
              FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
              LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id {WITH_TAKING}
              WHERE w.pipeline = %(pipeline)s AND {WITHIN} {unsettled}) windows
            WHERE %(state)s::text IS NULL OR state = %(state)s ORDER BY window_start
            """,
            key,
        )
    )


def find_last_start(connection: Connection, pipeline: str, most: int) -> datetime | None:
    """Return the start of the first of the pipeline's `most` last windows, None without windows."""
    row = connection.execute(
        'SELECT min(window_start) AS first FROM (SELECT window_start FROM onceover."window" WHERE pipeline = %s '
        "ORDER BY window_start DESC LIMIT %s) last_ones",
        [pipeline, most],
    ).fetchone()
    return row["first"] if row else None


def list_spans(connection: Connection, pipeline: str) -> list[tuple[datetime, datetime]]:
    """List the start and the end of each window."""
    query = 'SELECT window_start, window_end FROM onceover."window" WHERE pipeline = %s ORDER BY 1'
    return [(row["window_start"], row["window_end"]) for row in connection.execute(query, [pipeline])]


def count_by_state(connection: Connection, pipeline: str) -> dict[WindowState, int]:
    """Count the windows in each state that occurs."""
    rows = connection.execute(
        f"""
        WITH unsettled AS MATERIALIZED ({UNSETTLED}), counts AS (
          SELECT (SELECT count(*) FROM onceover."window" WHERE pipeline = %(pipeline)s) AS windows, (
            SELECT count(*) FROM onceover."window" WHERE pipeline = %(pipeline)s AND expired_at IS NOT NULL) AS expired)
        SELECT {STATE} AS state, count(*) AS n
        FROM unsettled JOIN onceover."window" w ON w.pipeline = %(pipeline)s AND w.window_start = unsettled.window_start
        JOIN onceover.pipeline p ON p.name = w.pipeline GROUP BY 1
        UNION ALL SELECT '{WindowState.EXPIRED}', expired FROM counts
        UNION ALL SELECT '{WindowState.CERTIFIED}', windows - expired - (SELECT count(*) FROM unsettled) FROM counts
        """,
        {"pipeline": pipeline},
    )
    counts = Counter[WindowState]()
    for row in rows:
        counts[WindowState(row["state"])] += row["n"]
    return {state: count for state, count in counts.items() if count}


def find_next_log_expiry(connection: Connection, pipeline: str) -> Mapping[str, Any] | None:
    """Return the uncertified window whose records Kafka drops first, by the retention that ingest saw last:
    `window_start`, `log_until`, `log_retention`, `now`. None if there is none, or Kafka keeps them for ever."""
    return connection.execute(
        f"""
        SELECT *, clock_timestamp() AS now FROM (
          SELECT w.window_start, {LOG_UNTIL} AS log_until, p.log_retention
          FROM onceover."window" w JOIN onceover.pipeline p ON p.name = w.pipeline
          WHERE w.pipeline = %s AND w.expired_at IS NULL AND NOT w.is_certified) windows
        WHERE log_until IS NOT NULL ORDER BY log_until, window_start LIMIT 1
        """,
        [pipeline],
    ).fetchone()


def read_last_end(connection: Connection, pipeline: str) -> datetime | None:
    """Return the end of the pipeline's last window, None without windows."""
    row = connection.execute(
        'SELECT max(window_end) AS last FROM onceover."window" WHERE pipeline = %s', [pipeline]
    ).fetchone()
    return row["last"] if row else None


def lock_windows(connection: Connection, pipeline: str, starts: Sequence[datetime]) -> None:
    """Lock these windows' rows until the open transaction ends."""
    connection.execute(
        """
        SELECT 1 FROM onceover."window" WHERE pipeline = %s AND window_start = ANY(%s)
        ORDER BY window_start FOR UPDATE
        """,
        [pipeline, list(starts)],
    )


def lock_rows(
    connection: Connection,
    pipeline: str,
    windows: Iterable[datetime],
    sources: Collection[KafkaPartition] | None = None,
) -> frozenset[datetime]:
    """Lock these windows by their starts, then the Kafka partitions, all if None, until the open transaction ends: in
    that order no transactions deadlock. Return the windows, which were found before they were locked; a caller looks
    again afterwards, for others may have written.

    Landings and accepted losses advance the frontier, so they wait for each other at the Kafka partitions.
    """
    starts = sorted(set(windows))
    lock_windows(connection, pipeline, starts)
    connection.execute(
        """
        SELECT 1 FROM onceover.kafka_partition WHERE pipeline = %s AND (%s OR (generation, kafka_partition) IN (
          SELECT * FROM unnest(%s::text[], %s::integer[])))
        ORDER BY generation, kafka_partition FOR UPDATE
        """,
        [
            pipeline,
            sources is None,
            [source.generation for source in sources or ()],
            [source.kafka_partition for source in sources or ()],
        ],
    )
    return frozenset(starts)


def require_locked(pipeline: str, locked: frozenset[datetime], needed: Iterable[datetime]) -> None:
    """Raise BusyError if a window has to be written that is not locked: another transaction named it meanwhile."""
    if more := sorted(set(needed) - locked):
        raise BusyError(
            f"another transaction has written to {pipeline} meanwhile, so that {len(more)} more windows are concerned, "
            f"the first of {more[0]:%Y-%m-%dT%H:%MZ}; nothing was changed, try again"
        )


def cut_into_chunks(starts: Iterable[datetime]) -> Iterator[list[datetime]]:
    """Yield windows in order, no more at once than a transaction may lock whose work grows with them: ingest, with a
    record for one of them, waits for it."""
    in_order = sorted(starts)
    for at in range(0, len(in_order), MAX_LOCKED):
        yield in_order[at : at + MAX_LOCKED]


def list_known_starts(connection: Connection, pipeline: str, starts: Sequence[datetime]) -> list[datetime]:
    """Return those of these windows that the ledger has."""
    rows = connection.execute(
        'SELECT window_start FROM onceover."window" WHERE pipeline = %s AND window_start = ANY(%s)',
        [pipeline, list(starts)],
    )
    return [row["window_start"] for row in rows]


def count_files_by_day(connection: Connection, pipeline: str) -> dict[date, int]:
    """Return for each day how many files its folder has by the ledger: of windows that have not expired, and compacted
    files of certified windows, for a reread may have set those of others aside."""
    rows = connection.execute(
        """
        SELECT (window_start AT TIME ZONE 'UTC')::date AS day,
          count(*) FILTER (WHERE expired_at IS NULL AND NOT text_replaced)
            + count(*) FILTER (WHERE is_certified AND compacted_bytes IS NOT NULL) AS files
        FROM onceover."window" WHERE pipeline = %s GROUP BY 1
        """,
        [pipeline],
    )
    return {row["day"]: row["files"] for row in rows}


def bump_versions(connection: Connection, pipeline: str, starts: Sequence[datetime]) -> None:
    """Give these windows a new version, so that their certificates are judged again. The caller holds their locks."""
    connection.execute(
        'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = ANY(%s)',
        [pipeline, list(starts)],
    )


def count_open_windows(connection: Connection, pipeline: str) -> int:
    """Count the registered windows that the watermark has not closed."""
    row = connection.execute(
        """
        SELECT count(*) AS open FROM onceover.pipeline p JOIN onceover."window" w ON w.pipeline = p.name
        WHERE p.name = %s AND NOT p.every_window_closed AND w.window_end > coalesce(p.watermark, '-infinity')
        """,
        [pipeline],
    ).fetchone()
    return int(row["open"]) if row else 0
