"""Expiries: raw files older than their pipeline keeps them, from the decision to the deletion.

Only the pipeline's driver moves a file away, between two batches: no other process appends, so no landing is lost with
the file. The file is deleted a day later; until then it can be put back, should a fenced driver have moved it after
all. A window expires only as it was certified; one that changed since keeps its raw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.frontiers import EXTRAS_ARE_SETTLED
from onceover.ledger.windows import RAW_IS_DAMAGED, lock_windows


@dataclass(frozen=True, slots=True)
class ExpiringFile:
    """One raw file: of a window as it was certified at `version`, or of one day of quarantine. `last_landing` and
    `landed_at` are those of its last landing; `compacted` says that a compacted file holds its records too."""

    window_start: datetime | None
    quarantine_day: date | None
    version: int | None
    last_landing: int
    bytes: int
    records: int
    landed_at: datetime
    expiry_id: int = 0
    compacted: bool = False


_CHUNK = 2_000
_COLUMNS = (
    "expiry_id, window_start, quarantine_day, version, last_landing, bytes, records, landed_at"  # those of ExpiringFile
)
# CERTIFIED and FREE: certified windows with all of their text, undamaged, neither claimed nor blocked, that count no
# record which may still land: it would then count twice, and nothing could rebuild the rows.
CERTIFIED = """
  onceover."window" w JOIN onceover.certificate c ON c.certificate_id = w.certificate_id AND c.version = w.version"""
FREE = f"""
  w.pipeline = %(pipeline)s AND w.expired_at IS NULL AND NOT w.text_replaced AND w.blocked_at IS NULL
    AND coalesce(w.claimed_until < clock_timestamp(), true) AND {EXTRAS_ARE_SETTLED}
    AND NOT {RAW_IS_DAMAGED}"""
# Whether a compacted file holds the records that window w was certified with.
IS_COMPACTED = """
  (w.compacted_records, w.compacted_high1, w.compacted_low1, w.compacted_high2, w.compacted_low2)
    IS NOT DISTINCT FROM (c.records, c.high1, c.low1, c.high2, c.low2)"""
_OF_WINDOWS = f"""
  SELECT w.window_start, NULL::date AS quarantine_day, w.version, max(l.landing_id) AS last_landing,
    c.frozen_length AS bytes, c.records, max(b.landed_at) AS landed_at, {IS_COMPACTED} AS compacted
  FROM {CERTIFIED}
  JOIN onceover.landing l ON l.pipeline = w.pipeline AND l.window_start = w.window_start
  JOIN onceover.batch b USING (batch_id)
  WHERE {FREE}
  GROUP BY w.pipeline, w.window_start, c.certificate_id"""

OF_DAYS = """
  SELECT NULL::timestamptz AS window_start, l.quarantine_day, NULL::bigint AS version,
    max(l.landing_id) AS last_landing, max(l.byte_end) AS bytes, sum(l.records)::bigint AS records,
    max(b.landed_at) AS landed_at, false AS compacted
  FROM onceover.landing l JOIN onceover.batch b USING (batch_id)
  WHERE l.pipeline = %(pipeline)s AND l.quarantine_day IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM onceover.expiry e WHERE e.pipeline = l.pipeline AND e.quarantine_day = l.quarantine_day
      AND e.state <> 'dropped')
  GROUP BY l.quarantine_day"""


def list_expirable(connection: Connection, pipeline: str, older_than_ms: int) -> list[ExpiringFile]:
    """Return the files without a landing for `older_than_ms`, oldest first; of windows, only certified ones."""
    rows = connection.execute(
        f"""
        SELECT * FROM ({_OF_WINDOWS} UNION ALL {OF_DAYS}) files
        WHERE landed_at < clock_timestamp() - make_interval(secs => %(seconds)s)
        ORDER BY landed_at, window_start, quarantine_day
        """,
        {"pipeline": pipeline, "seconds": older_than_ms / 1000},
    )
    return [ExpiringFile(**row) for row in rows]


def count_kept_windows(connection: Connection, pipeline: str, older_than_ms: int) -> int:
    """Count the windows as old that stay, because they are not certified, are damaged, have an extra that may
    still land, are held by a repair, or are blocked."""
    row = connection.execute(
        f"""
        SELECT count(*) AS n FROM (
          SELECT l.window_start FROM onceover.landing l JOIN onceover.batch b USING (batch_id)
          JOIN onceover."window" w ON w.pipeline = l.pipeline AND w.window_start = l.window_start
          WHERE l.pipeline = %(pipeline)s AND w.expired_at IS NULL AND NOT w.text_replaced GROUP BY l.window_start
          HAVING max(b.landed_at) < clock_timestamp() - make_interval(secs => %(seconds)s)
          EXCEPT SELECT window_start FROM ({_OF_WINDOWS}) certified) kept
        """,
        {"pipeline": pipeline, "seconds": older_than_ms / 1000},
    ).fetchone()
    return int(row["n"]) if row else 0


def mark_expired(connection: Connection, pipeline: str, files: Sequence[ExpiringFile], who: str, why: str) -> int:
    """Mark those of these files expired that have not changed since they were listed; the driver then moves them away.
    Returns their number. Each chunk is a transaction of its own, so that no writer waits long for a window."""
    return sum(
        _mark_chunk(connection, pipeline, files[at : at + _CHUNK], who, why) for at in range(0, len(files), _CHUNK)
    )


def _mark_chunk(connection: Connection, pipeline: str, files: Sequence[ExpiringFile], who: str, why: str) -> int:
    versions = {file.window_start: file.version for file in files if file.window_start is not None}
    starts = list(versions)
    with connection.transaction():
        lock_windows(connection, pipeline, starts)
        unchanged = connection.execute(
            f"""
            SELECT w.window_start FROM {CERTIFIED}
            JOIN unnest(%(starts)s::timestamptz[], %(versions)s::bigint[]) AS listed (window_start, version)
              ON listed.window_start = w.window_start AND listed.version = w.version
            WHERE {FREE}
            """,
            {"pipeline": pipeline, "starts": starts, "versions": list(versions.values())},
        )
        kept = {row["window_start"] for row in unchanged} | {None}
        expiring = [file for file in files if file.window_start in kept]
        cursor = connection.cursor()
        cursor.executemany(
            """
            INSERT INTO onceover.expiry (pipeline, window_start, quarantine_day, version, last_landing, bytes, records,
              landed_at, who, why) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
            """,
            [
                (pipeline, x.window_start, x.quarantine_day, x.version, x.last_landing, x.bytes, x.records,
                 x.landed_at, who, why)
                for x in expiring
            ],
        )  # fmt: skip
        # A compacted file with the same records replaces the text: then the window has not expired.
        connection.execute(
            f"""
            UPDATE onceover."window" w SET text_replaced = {IS_COMPACTED},
              expired_at = CASE WHEN NOT {IS_COMPACTED} THEN clock_timestamp() END
            FROM onceover.certificate c
            WHERE w.pipeline = %(pipeline)s AND w.window_start = ANY(%(starts)s)
              AND c.certificate_id = w.certificate_id AND c.version = w.version
            """,
            {"pipeline": pipeline, "starts": [file.window_start for file in expiring if file.window_start]},
        )
    return cursor.rowcount


def list_files_to_move(connection: Connection, pipeline: str, most: int) -> list[ExpiringFile]:
    """Return the first files that are still to be moved away."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM onceover.expiry WHERE pipeline = %s AND state = 'wanted' ORDER BY expiry_id LIMIT %s",
        [pipeline, most],
    )
    return [ExpiringFile(**row) for row in rows]


def list_files_to_delete(connection: Connection, pipeline: str, most: int) -> list[ExpiringFile]:
    """Return the first files that were moved away more than a day ago and are not yet deleted."""
    rows = connection.execute(
        f"""
        SELECT {_COLUMNS} FROM onceover.expiry WHERE pipeline = %s AND state = 'moved'
          AND moved_at < clock_timestamp() - interval '1 day' ORDER BY moved_at LIMIT %s
        """,
        [pipeline, most],
    )
    return [ExpiringFile(**row) for row in rows]


def is_touched(connection: Connection, pipeline: str, file: ExpiringFile) -> bool:
    """Return whether the file's window or day has changed since it expired."""
    if file.window_start is not None:
        row = connection.execute(
            'SELECT version <> %s AS touched FROM onceover."window" WHERE pipeline = %s AND window_start = %s',
            [file.version, pipeline, file.window_start],
        ).fetchone()
    else:
        row = connection.execute(
            "SELECT max(landing_id) > %s AS touched FROM onceover.landing WHERE pipeline = %s AND quarantine_day = %s",
            [file.last_landing, pipeline, file.quarantine_day],
        ).fetchone()
    return bool(row and row["touched"])


def mark_dropped(
    connection: Connection, epoch: Epoch, file: ExpiringFile, *, judge_again: bool = False, brought_back: bool = False
) -> None:
    """Record that the file is kept after all, `brought_back` if it had been moved already. With `judge_again`, the next
    detection judges its window even if no batch has touched it."""
    with connection.transaction():
        _update(connection, epoch, file.expiry_id, "state = 'dropped', finished_at = clock_timestamp()")
        connection.execute(
            """
            UPDATE onceover."window" SET expired_at = NULL, text_replaced = false,
              removed_to_landing = CASE WHEN %(back)s THEN NULL ELSE removed_to_landing END,
              removed_to_certificate = CASE WHEN %(back)s THEN NULL ELSE removed_to_certificate END,
              version = version + CASE WHEN %(again)s AND version = %(version)s THEN 1 ELSE 0 END
            WHERE pipeline = %(pipeline)s AND window_start = %(start)s
            """,
            {
                "pipeline": epoch.pipeline, "start": file.window_start, "back": brought_back, "again": judge_again,
                "version": file.version,
            },
        )  # fmt: skip


def postpone_deletions(connection: Connection, epoch: Epoch, expiry_ids: Sequence[int]) -> None:
    """Record that these files, which were moved away, are to be kept for another day."""
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.execute(
            "UPDATE onceover.expiry SET moved_at = clock_timestamp() WHERE expiry_id = ANY(%s)", [list(expiry_ids)]
        )


def mark_moved(connection: Connection, epoch: Epoch, expiry_id: int) -> None:
    """Record that the file was moved away."""
    with connection.transaction():
        _update(connection, epoch, expiry_id, "state = 'moved', moved_at = clock_timestamp()")
        connection.execute(
            """
            UPDATE onceover."window" w SET removed_to_landing = e.last_landing, removed_to_certificate = (
              SELECT max(certificate_id) FROM onceover.certificate c
              WHERE c.pipeline = w.pipeline AND c.window_start = w.window_start)
            FROM onceover.expiry e
            WHERE e.expiry_id = %s AND w.pipeline = e.pipeline AND w.window_start = e.window_start
            """,
            [expiry_id],
        )


def mark_deleted(connection: Connection, epoch: Epoch, expiry_id: int) -> None:
    """Record that the file was deleted."""
    _update(connection, epoch, expiry_id, "state = 'deleted', finished_at = clock_timestamp()")


def _update(connection: Connection, epoch: Epoch, expiry_id: int, change: str) -> None:
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.execute(f"UPDATE onceover.expiry SET {change} WHERE expiry_id = %s", [expiry_id])


def count_files_to_move(connection: Connection, pipeline: str) -> int:
    """Count the files that are still to be moved away."""
    row = connection.execute(
        "SELECT count(*) AS n FROM onceover.expiry WHERE pipeline = %s AND state = 'wanted'", [pipeline]
    ).fetchone()
    return int(row["n"]) if row else 0


def is_range_expired(connection: Connection, pipeline: str, start: datetime, end: datetime) -> bool:
    """Return whether the range has windows, and all of them have expired."""
    row = connection.execute(
        'SELECT bool_and(expired_at IS NOT NULL) AS expired FROM onceover."window" '
        "WHERE pipeline = %s AND window_start >= %s AND window_start < %s",
        [pipeline, start, end],
    ).fetchone()
    return bool(row and row["expired"])


def list_quarantine_lengths(connection: Connection, pipeline: str) -> dict[date, int]:
    """Return the bytes that each day's quarantine file holds at least, by its landings; without expired days."""
    rows = connection.execute(f"SELECT quarantine_day, bytes FROM ({OF_DAYS}) days ORDER BY 1", {"pipeline": pipeline})
    return {row["quarantine_day"]: int(row["bytes"]) for row in rows}


def list_expired(connection: Connection, pipeline: str) -> tuple[frozenset[datetime], frozenset[date]]:
    """Return the expired windows, by their starts, and the expired days of quarantine."""
    windows = connection.execute(
        'SELECT window_start FROM onceover."window" WHERE pipeline = %s AND expired_at IS NOT NULL', [pipeline]
    )
    days = connection.execute(
        "SELECT quarantine_day FROM onceover.expiry "
        "WHERE pipeline = %s AND quarantine_day IS NOT NULL AND state <> 'dropped'",
        [pipeline],
    )
    return frozenset(row["window_start"] for row in windows), frozenset(row["quarantine_day"] for row in days)
