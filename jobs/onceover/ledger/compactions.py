"""Compactions: the windows that qualify, the recorded files, the windows whose text they replace, and found files.

A window has one compacted file, named for the records that the window was certified with: a recorded file is never
written again, and a file without a record has no owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from onceover.ledger.columns import count_columns, digest_columns, read_digest
from onceover.ledger.database import Connection, hold_lock
from onceover.ledger.expiries import CERTIFIED, FREE, IS_COMPACTED
from onceover.ledger.windows import WITHIN, lock_windows
from onceover.model.digest import Digest
from onceover.model.raw_file import CompactedFile

COMPACTED_COLUMNS = (
    ", ".join(f"w.compacted_{name}" for name in ("bytes", *digest_columns(Digest()))) + ", w.text_replaced"
)
"""The columns of window w that `parse_compacted` reads."""
# Bytes of the window file that certificate c of window w covers, 0 if that text has expired or was compacted since.
FROZEN = """
  CASE WHEN c.certificate_id <= w.removed_to_certificate THEN 0 ELSE c.frozen_length END"""
_SET_COMPACTED = ", ".join(f"compacted_{name} = %({name})s" for name in ("bytes", *digest_columns(Digest())))

# Windows whose certificate was not revoked and whose records no compacted file replaces, unless a repair holds them.
_WITH_TEXT = f"""
  SELECT w.window_start, c.certificate_id, {FROZEN} AS frozen, c.records, c.high1, c.low1, c.high2, c.low2,
    c.last_landing
  FROM onceover."window" w JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
  WHERE w.pipeline = %(pipeline)s AND w.expired_at IS NULL AND NOT w.text_replaced AND c.records > 0
    AND coalesce(w.claimed_until < clock_timestamp(), true)"""


@dataclass(frozen=True, slots=True)
class CompactionDue:
    """One window that may be compacted: the digest of its certificate, and the bytes of text that this covers."""

    window_start: datetime
    digest: Digest
    text_bytes: int


def list_compactable(
    connection: Connection, pipeline: str, older_than_ms: int, start: datetime | None, end: datetime | None
) -> list[CompactionDue]:
    """Return the windows of the range (None: no bound) that may be compacted, in order: certified, neither claimed nor
    blocked, without a landing for `older_than_ms`, and not yet compacted as they were certified."""
    rows = connection.execute(
        f"""
        SELECT w.window_start, c.frozen_length, c.records, c.high1, c.low1, c.high2, c.low2 FROM {CERTIFIED}
        JOIN onceover.landing l ON l.pipeline = w.pipeline AND l.window_start = w.window_start
        JOIN onceover.batch b USING (batch_id)
        WHERE {FREE} AND c.records > 0 AND NOT {IS_COMPACTED} AND {WITHIN}
        GROUP BY w.window_start, c.certificate_id
        HAVING max(b.landed_at) < clock_timestamp() - make_interval(secs => %(seconds)s)
        ORDER BY w.window_start
        """,
        {"pipeline": pipeline, "start": start, "end": end, "seconds": older_than_ms / 1000},
    )
    return [CompactionDue(row["window_start"], read_digest(row), row["frozen_length"]) for row in rows]


def hold_compaction(connection: Connection, pipeline: str, patience_ms: int = 10_000) -> None:
    """Lock the pipeline's compaction until the connection ends. Raises as `hold_lock`."""
    hold_lock(connection, f"onceover compact {pipeline}", f"compacts {pipeline}", patience_ms)


def record_compaction(
    connection: Connection,
    pipeline: str,
    due: CompactionDue,
    length: int,
    place: Callable[[], None],
) -> bool:
    """Record a window's compacted file of `length` bytes, unless the window has changed or has such a file. Returns
    whether it was recorded. `place` moves the file to its final name while the window is locked against expiry; a
    former file of the window stays beside it."""
    with connection.transaction():
        lock_windows(connection, pipeline, [due.window_start])
        row = connection.execute(
            f"""
            SELECT c.records, c.high1, c.low1, c.high2, c.low2 FROM {CERTIFIED}
            WHERE {FREE} AND NOT {IS_COMPACTED} AND w.window_start = %(start)s
            """,
            {"pipeline": pipeline, "start": due.window_start},
        ).fetchone()
        if row is None or read_digest(row) != due.digest:
            return False
        place()
        set_compacted(connection, pipeline, {due.window_start: CompactedFile(due.digest, length)})
    return True


def set_compacted(connection: Connection, pipeline: str, files: Mapping[datetime, CompactedFile]) -> None:
    """Record the compacted file of each window, beside its text."""
    connection.cursor().executemany(
        f'UPDATE onceover."window" SET {_SET_COMPACTED} WHERE pipeline = %(pipeline)s AND window_start = %(start)s',
        [
            {"pipeline": pipeline, "start": start, "bytes": file.bytes, **digest_columns(file.digest)}
            for start, file in sorted(files.items())
        ],
    )


def parse_compacted(row: Mapping[str, object]) -> CompactedFile | None:
    """Return the file that replaced a window's text, by its row with COMPACTED_COLUMNS; None if none did."""
    return _parse(row) if row["text_replaced"] else None


def _parse(row: Mapping[str, object]) -> CompactedFile | None:
    length = row["compacted_bytes"]
    return None if length is None else CompactedFile(read_digest(row, "compacted_"), int(str(length)))


def forget_compaction(connection: Connection, pipeline: str, window_start: datetime) -> None:
    """Delete the record of a window's compacted file that does not exist, so that the window may be compacted again."""
    connection.execute(
        f'UPDATE onceover."window" SET {_SET_COMPACTED}, text_replaced = false '
        "WHERE pipeline = %(pipeline)s AND window_start = %(start)s",
        {"pipeline": pipeline, "start": window_start, "bytes": None, **count_columns(None)},
    )


def list_substitutes(
    connection: Connection, pipeline: str, starts: Sequence[datetime]
) -> dict[datetime, CompactedFile | None]:
    """Return, of those windows that have not expired, the compacted file that replaced the text, None for text."""
    rows = connection.execute(
        f"""
        SELECT w.window_start, {COMPACTED_COLUMNS} FROM onceover."window" w
        WHERE w.pipeline = %s AND w.window_start = ANY(%s) AND w.expired_at IS NULL
        """,
        [pipeline, list(starts)],
    )
    return {row["window_start"]: parse_compacted(row) for row in rows}


def read_last_compaction(
    connection: Connection, pipeline: str, window_start: datetime
) -> tuple[CompactedFile | None, bool]:
    """Return the file that the window was compacted to, and whether it replaced the text."""
    row = connection.execute(
        f'SELECT {COMPACTED_COLUMNS} FROM onceover."window" w WHERE w.pipeline = %s AND w.window_start = %s',
        [pipeline, window_start],
    ).fetchone()
    return (None, False) if row is None else (_parse(row), row["text_replaced"])


# A ledger that was restored from a backup does not know what was compacted or expired after it. The file that is left
# is named for the records of the window's certificate, and the ledger takes it over once it reads back as these.


def list_certified_texts(
    connection: Connection, pipeline: str, start: datetime | None, end: datetime | None
) -> list[CompactionDue]:
    """Return the windows of the range (None: no bound) whose last certificate covers text, in order, with the bytes of
    that text and of all that landed since; also those that were reopened or are blocked since."""
    rows = connection.execute(
        f"""
        SELECT *, frozen + (SELECT coalesce(sum(l.byte_end - l.byte_start), 0) FROM onceover.landing l
            WHERE l.pipeline = %(pipeline)s AND l.window_start = w.window_start
              AND l.landing_id > w.last_landing)::bigint AS bytes
        FROM ({_WITH_TEXT}) w WHERE frozen > 0 AND {WITHIN} ORDER BY window_start
        """,
        {"pipeline": pipeline, "start": start, "end": end},
    )
    return [CompactionDue(row["window_start"], read_digest(row), row["bytes"]) for row in rows]


def list_known_digests(
    connection: Connection, pipeline: str, starts: Sequence[datetime]
) -> set[tuple[datetime, Digest]]:
    """Return the digests of all certificates that these windows ever had, and of their compacted files: a file that is
    named for one of them holds no record that this ledger does not count."""
    rows = connection.execute(
        """
        SELECT window_start, records, high1, low1, high2, low2 FROM onceover.certificate
        WHERE pipeline = %(pipeline)s AND window_start = ANY(%(starts)s)
        UNION SELECT window_start, compacted_records, compacted_high1, compacted_low1, compacted_high2, compacted_low2
        FROM onceover."window"
        WHERE pipeline = %(pipeline)s AND window_start = ANY(%(starts)s) AND compacted_bytes IS NOT NULL
        """,
        {"pipeline": pipeline, "starts": list(starts)},
    )
    return {(row["window_start"], read_digest(row)) for row in rows}


def take_over(connection: Connection, pipeline: str, found: CompactionDue, length: int) -> bool:
    """Record that a compacted file of `length` bytes replaced the window's text, unless the window has another
    certificate by now or a repair holds it. Lifts a block: the next detection judges the window. Returns whether it was
    recorded."""
    with connection.transaction():
        lock_windows(connection, pipeline, [found.window_start])
        row = connection.execute(
            f"SELECT * FROM ({_WITH_TEXT}) texts WHERE window_start = %(start)s",
            {"pipeline": pipeline, "start": found.window_start},
        ).fetchone()
        if row is None or read_digest(row) != found.digest:
            return False
        set_compacted(connection, pipeline, {found.window_start: CompactedFile(found.digest, length)})
        connection.execute(
            """
            UPDATE onceover."window" SET text_replaced = true, removed_to_certificate = %s, removed_to_landing = %s,
              tries = 0, blocked_at = NULL, blocked_why = NULL
            WHERE pipeline = %s AND window_start = %s
            """,
            [row["certificate_id"], row["last_landing"], pipeline, found.window_start],
        )
    return True
