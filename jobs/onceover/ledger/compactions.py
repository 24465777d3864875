"""Compactions: the windows that qualify, the recorded files, and the windows whose text they replace.

A window has one compacted file, named for the records that the window was certified with: a recorded file is never
written again, and a file without a record has no owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.errors import LockNotAvailable

from onceover.errors import BusyError
from onceover.ledger.columns import count_columns, digest_columns, read_digest
from onceover.ledger.database import Connection
from onceover.ledger.expiries import CERTIFIED, FREE, IS_COMPACTED
from onceover.ledger.windows import lock_windows
from onceover.model.digest import Digest
from onceover.model.raw_file import CompactedFile

COMPACTED_COLUMNS = (
    ", ".join(f"w.compacted_{name}" for name in ("bytes", *digest_columns(Digest()))) + ", w.text_replaced"
)
"""The columns of window w that `parse_compacted` reads."""
_SET_COMPACTED = ", ".join(f"compacted_{name} = %({name})s" for name in ("bytes", *digest_columns(Digest())))


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
        WHERE {FREE} AND c.records > 0 AND NOT {IS_COMPACTED}
          AND (%(start)s::timestamptz IS NULL OR w.window_start >= %(start)s)
          AND (%(end)s::timestamptz IS NULL OR w.window_start < %(end)s)
        GROUP BY w.window_start, c.certificate_id
        HAVING max(b.landed_at) < clock_timestamp() - make_interval(secs => %(seconds)s)
        ORDER BY w.window_start
        """,
        {"pipeline": pipeline, "start": start, "end": end, "seconds": older_than_ms / 1000},
    )
    return [CompactionDue(row["window_start"], read_digest(row), row["frozen_length"]) for row in rows]


def hold_compaction(connection: Connection, pipeline: str, patience_ms: int = 10_000) -> None:
    """Lock the pipeline's compaction until the connection ends. Raises BusyError if another process holds the lock
    beyond `patience_ms`; a killed process frees it within moments."""
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [f"{patience_ms}ms"])
            connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [f"onceover compact {pipeline}"])
    except LockNotAvailable as error:
        raise BusyError(f"another process compacts {pipeline}; try again when it has ended") from error


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
