"""Raw that is older than its pipeline keeps it: what may go, what somebody has let go, and what became of it.

Only the pipeline's driver moves a file away, between two batches: nobody else appends, so nothing that lands goes with
it. It is deleted a day later: until then it can be put back, should a driver that was fenced have moved it after all. A
window goes only as it was certified; whatever touched it since keeps its raw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from onceover.ledger.database import Connection
from onceover.ledger.digest_columns import compare_digests
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.windows import lock_windows


@dataclass(frozen=True, slots=True)
class ExpiringFile:
    """One file: of a window as it was certified at `version`, or of one day of quarantine. `last_landing` and
    `landed_at` are of what came to it last; `compacted` if its records stand in a Parquet file as well."""

    window_start: datetime | None
    quarantine_day: date | None
    version: int | None
    last_landing: int
    bytes: int
    records: int
    landed_at: datetime
    expiry_id: int = 0
    compacted: bool = False


_AT_ONCE = 2_000
_COLUMNS = (
    "expiry_id, window_start, quarantine_day, version, last_landing, bytes, records, landed_at"  # those of ExpiringFile
)
# Windows that may go: their certificate stands, and nobody holds them. Their text is there, whole.
CERTIFIED = """
  onceover."window" w JOIN onceover.certificate c ON c.certificate_id = w.certificate_id AND c.version = w.version"""
FREE = """
  w.pipeline = %(pipeline)s AND w.expired_at IS NULL AND w.compaction_id IS NULL AND w.blocked_at IS NULL
    AND coalesce(w.claimed_until < clock_timestamp(), true)"""
# Whether a Parquet file holds what window w was certified with.
IS_COMPACTED = f"""
  EXISTS (SELECT 1 FROM onceover.compaction k
    WHERE k.pipeline = w.pipeline AND k.window_start = w.window_start AND {compare_digests("k", "c")})"""
_OF_WINDOWS = f"""
  SELECT w.window_start, NULL::date AS quarantine_day, w.version, max(l.landing_id) AS last_landing,
    c.frozen_length AS bytes, c.records, max(b.landed_at) AS landed_at, {IS_COMPACTED} AS compacted
  FROM {CERTIFIED}
  JOIN onceover.landing l ON l.pipeline = w.pipeline AND l.window_start = w.window_start
  JOIN onceover.batch b USING (batch_id)
  WHERE {FREE}
  GROUP BY w.pipeline, w.window_start, c.certificate_id"""

_OF_DAYS = """
  SELECT NULL::timestamptz, l.quarantine_day, NULL::bigint, max(l.landing_id), max(l.byte_end), sum(l.records)::bigint,
    max(b.landed_at), false
  FROM onceover.landing l JOIN onceover.batch b USING (batch_id)
  WHERE l.pipeline = %(pipeline)s AND l.quarantine_day IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM onceover.expiry e WHERE e.pipeline = l.pipeline AND e.quarantine_day = l.quarantine_day
      AND e.state <> 'dropped')
  GROUP BY l.quarantine_day"""


def list_expirable(connection: Connection, pipeline: str, older_than_ms: int) -> list[ExpiringFile]:
    """What nothing has come to for so long, oldest first; windows only where their certificate stands."""
    rows = connection.execute(
        f"""
        SELECT * FROM ({_OF_WINDOWS} UNION ALL {_OF_DAYS}) files
        WHERE landed_at < clock_timestamp() - make_interval(secs => %(seconds)s)
        ORDER BY landed_at, window_start, quarantine_day
        """,
        {"pipeline": pipeline, "seconds": older_than_ms / 1000},
    )
    return [ExpiringFile(**row) for row in rows]


def count_kept_windows(connection: Connection, pipeline: str, older_than_ms: int) -> int:
    """How many windows are as old and stay, because they are not certified, are held by a repair, or are blocked."""
    row = connection.execute(
        f"""
        SELECT count(*) AS n FROM (
          SELECT l.window_start FROM onceover.landing l JOIN onceover.batch b USING (batch_id)
          JOIN onceover."window" w ON w.pipeline = l.pipeline AND w.window_start = l.window_start
          WHERE l.pipeline = %(pipeline)s AND w.expired_at IS NULL AND w.compaction_id IS NULL GROUP BY l.window_start
          HAVING max(b.landed_at) < clock_timestamp() - make_interval(secs => %(seconds)s)
          EXCEPT SELECT window_start FROM ({_OF_WINDOWS}) certified) kept
        """,
        {"pipeline": pipeline, "seconds": older_than_ms / 1000},
    ).fetchone()
    return int(row["n"]) if row else 0


def mark_expired(connection: Connection, pipeline: str, files: Sequence[ExpiringFile], who: str, why: str) -> int:
    """Have the driver move these away, each only if it still is as it was listed; returns how many that are. Some
    thousands at a time, each in a transaction of its own: whoever needs such a window waits for no more."""
    return sum(
        _mark_chunk(connection, pipeline, files[at : at + _AT_ONCE], who, why) for at in range(0, len(files), _AT_ONCE)
    )


def _mark_chunk(connection: Connection, pipeline: str, files: Sequence[ExpiringFile], who: str, why: str) -> int:
    starts = [one.window_start for one in files if one.window_start is not None]
    with connection.transaction():
        lock_windows(connection, pipeline, starts)
        same = connection.execute(
            f"""
            SELECT w.window_start FROM {CERTIFIED}
            JOIN unnest(%(starts)s::timestamptz[], %(versions)s::bigint[]) AS listed (window_start, version)
              ON listed.window_start = w.window_start AND listed.version = w.version
            WHERE {FREE}
            """,
            {
                "pipeline": pipeline,
                "starts": starts,
                "versions": [one.version for one in files if one.window_start is not None],
            },
        )
        still = {row["window_start"] for row in same} | {None}
        going = [one for one in files if one.window_start in still]
        cursor = connection.cursor()
        cursor.executemany(
            """
            INSERT INTO onceover.expiry (pipeline, window_start, quarantine_day, version, last_landing, bytes, records,
              landed_at, who, why) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
            """,
            [
                (pipeline, x.window_start, x.quarantine_day, x.version, x.last_landing, x.bytes, x.records,
                 x.landed_at, who, why)
                for x in going
            ],
        )  # fmt: skip
        # Where a Parquet file holds the same records, it stands in for the text, and nothing has expired.
        connection.execute(
            f"""
            UPDATE onceover."window" w SET compaction_id = f.compaction_id,
              expired_at = CASE WHEN f.compaction_id IS NULL THEN clock_timestamp() END
            FROM (
              SELECT w.window_start, k.compaction_id FROM {CERTIFIED}
              LEFT JOIN onceover.compaction k ON k.pipeline = w.pipeline AND k.window_start = w.window_start
                AND {compare_digests("k", "c")}
              WHERE w.pipeline = %(pipeline)s AND w.window_start = ANY(%(starts)s)) f
            WHERE w.pipeline = %(pipeline)s AND w.window_start = f.window_start
            """,
            {"pipeline": pipeline, "starts": [one.window_start for one in going if one.window_start is not None]},
        )
    return cursor.rowcount


def list_files_to_move(connection: Connection, pipeline: str, most: int) -> list[ExpiringFile]:
    """The first files that are to be moved away and are not yet."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM onceover.expiry WHERE pipeline = %s AND state = 'wanted' ORDER BY expiry_id LIMIT %s",
        [pipeline, most],
    )
    return [ExpiringFile(**row) for row in rows]


def list_files_to_delete(connection: Connection, pipeline: str, most: int) -> list[ExpiringFile]:
    """The first files that were moved away and are to be deleted now."""
    rows = connection.execute(
        f"""
        SELECT {_COLUMNS} FROM onceover.expiry WHERE pipeline = %s AND state = 'moved'
          AND moved_at < clock_timestamp() - interval '1 day' ORDER BY moved_at LIMIT %s
        """,
        [pipeline, most],
    )
    return [ExpiringFile(**row) for row in rows]


def is_touched(connection: Connection, pipeline: str, one: ExpiringFile) -> bool:
    """Whether something has come to it since it was let go."""
    if one.window_start is not None:
        row = connection.execute(
            'SELECT version <> %s AS touched FROM onceover."window" WHERE pipeline = %s AND window_start = %s',
            [one.version, pipeline, one.window_start],
        ).fetchone()
    else:
        row = connection.execute(
            "SELECT max(landing_id) > %s AS touched FROM onceover.landing WHERE pipeline = %s AND quarantine_day = %s",
            [one.last_landing, pipeline, one.quarantine_day],
        ).fetchone()
    return bool(row and row["touched"])


def mark_dropped(connection: Connection, epoch: Epoch, one: ExpiringFile) -> None:
    """Its raw stays after all, and the window is judged again."""
    with connection.transaction():
        _note(connection, epoch, one.expiry_id, "state = 'dropped', finished_at = clock_timestamp()")
        connection.execute(
            'UPDATE onceover."window" SET expired_at = NULL, compaction_id = NULL '
            "WHERE pipeline = %s AND window_start = %s",
            [epoch.pipeline, one.window_start],
        )


def mark_moved(connection: Connection, epoch: Epoch, expiry_id: int) -> None:
    """Its file is out of the way."""
    with connection.transaction():
        _note(connection, epoch, expiry_id, "state = 'moved', moved_at = clock_timestamp()")
        connection.execute(
            """
            UPDATE onceover."window" w SET last_let_go = e.last_landing, let_go_certificate = (
              SELECT max(certificate_id) FROM onceover.certificate c
              WHERE c.pipeline = w.pipeline AND c.window_start = w.window_start)
            FROM onceover.expiry e
            WHERE e.expiry_id = %s AND w.pipeline = e.pipeline AND w.window_start = e.window_start
            """,
            [expiry_id],
        )


def mark_deleted(connection: Connection, epoch: Epoch, expiry_id: int) -> None:
    """Its file is gone."""
    _note(connection, epoch, expiry_id, "state = 'deleted', finished_at = clock_timestamp()")


def _note(connection: Connection, epoch: Epoch, expiry_id: int, change: str) -> None:
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.execute(f"UPDATE onceover.expiry SET {change} WHERE expiry_id = %s", [expiry_id])


def count_files_to_move(connection: Connection, pipeline: str) -> int:
    """How many files are still to be moved away."""
    row = connection.execute(
        "SELECT count(*) AS n FROM onceover.expiry WHERE pipeline = %s AND state = 'wanted'", [pipeline]
    ).fetchone()
    return int(row["n"]) if row else 0


def is_range_expired(connection: Connection, pipeline: str, start: datetime, end: datetime) -> bool:
    """Whether there are windows in the range, and raw of every one of them is gone or about to go."""
    row = connection.execute(
        'SELECT bool_and(expired_at IS NOT NULL) AS gone FROM onceover."window" '
        "WHERE pipeline = %s AND window_start >= %s AND window_start < %s",
        [pipeline, start, end],
    ).fetchone()
    return bool(row and row["gone"])


def list_expired(connection: Connection, pipeline: str) -> tuple[frozenset[datetime], frozenset[date]]:
    """Windows, by their starts, and days of quarantine whose raw is gone or about to go."""
    windows = connection.execute(
        'SELECT window_start FROM onceover."window" WHERE pipeline = %s AND expired_at IS NOT NULL', [pipeline]
    )
    days = connection.execute(
        "SELECT quarantine_day FROM onceover.expiry "
        "WHERE pipeline = %s AND quarantine_day IS NOT NULL AND state <> 'dropped'",
        [pipeline],
    )
    return frozenset(row["window_start"] for row in windows), frozenset(row["quarantine_day"] for row in days)
