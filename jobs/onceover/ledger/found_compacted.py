"""Compacted files that this ledger does not know as replacements of text, because it was restored from a backup.

A compaction or an expiry after the backup is forgotten; the file that it left is named for the records of the window's
certificate, and the ledger takes it over once it reads back as these.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from onceover.ledger.certificates import FROZEN
from onceover.ledger.columns import read_digest
from onceover.ledger.compactions import CompactionDue, set_compacted
from onceover.ledger.database import Connection
from onceover.ledger.windows import lock_windows
from onceover.model.digest import Digest
from onceover.model.raw_file import CompactedFile

# Windows whose certificate was not revoked and whose records no compacted file replaces, unless a repair holds them.
_WITH_TEXT = f"""
  SELECT w.window_start, c.certificate_id, {FROZEN} AS frozen, c.records, c.high1, c.low1, c.high2, c.low2,
    c.last_landing
  FROM onceover."window" w JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
  WHERE w.pipeline = %(pipeline)s AND w.expired_at IS NULL AND NOT w.text_replaced AND c.records > 0
    AND coalesce(w.claimed_until < clock_timestamp(), true)"""


def list_certified_texts(
    connection: Connection, pipeline: str, start: datetime | None, end: datetime | None
) -> list[CompactionDue]:
    """Return the windows of the range (None: no bound) whose last certificate covers text, in order, with the bytes of
    that text and of all that landed since; also those that were reopened or are blocked since."""
    rows = connection.execute(
        f"""
        SELECT *, frozen + (SELECT coalesce(sum(l.byte_end - l.byte_start), 0) FROM onceover.landing l
            WHERE l.pipeline = %(pipeline)s AND l.window_start = texts.window_start
              AND l.landing_id > texts.last_landing)::bigint AS bytes
        FROM ({_WITH_TEXT}) texts WHERE frozen > 0
          AND (%(start)s::timestamptz IS NULL OR window_start >= %(start)s)
          AND (%(end)s::timestamptz IS NULL OR window_start < %(end)s) ORDER BY window_start
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
