"""Rereads: landed offset ranges to read again from Kafka, because one window file has lost their lines.

A refill lands offsets that never landed. A reread lands nothing, for its records have landed: the driver appends the
lines of that one window once more, and a repair proves the landings by them. No other window changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from onceover.ledger.compactions import list_substitutes
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.landings import read_landings
from onceover.ledger.offset_columns import read_range
from onceover.ledger.windows import bump_versions, lock_windows
from onceover.model.claim import ClaimedWindow
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class Reread:
    """One range to read again for one window, by the contract version that its records had."""

    window_start: datetime
    contract_version: int
    offsets: OffsetRange
    reread_id: int = 0


def record_rereads(connection: Connection, pipeline: str, request_id: int, rereads: Iterable[Reread]) -> None:
    """Record these ranges as a repair request's, in place of all that still wait for the same windows, and have the
    windows judged again: until they are repaired, their certificates' raw is not whole."""
    wanted = list(rereads)
    windows = sorted({reread.window_start for reread in wanted})
    with connection.transaction():
        lock_windows(connection, pipeline, windows)
        bump_versions(connection, pipeline, windows)
        connection.execute(
            "UPDATE onceover.reread SET state = 'refused', reason = 'requested again', finished_at = clock_timestamp() "
            "WHERE pipeline = %s AND window_start = ANY(%s) AND state = 'wanted'",
            [pipeline, windows],
        )
        connection.cursor().executemany(
            """
            INSERT INTO onceover.reread (pipeline, window_start, contract_version, generation, kafka_partition,
              start_offset, end_offset, request_id) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
            """,
            [
                (pipeline, r.window_start, r.contract_version, r.offsets.source.generation,
                 r.offsets.source.kafka_partition, r.offsets.start, r.offsets.end, request_id)
                for r in wanted
            ],
        )  # fmt: skip


def lift_expiry(connection: Connection, pipeline: str, window_start: datetime) -> None:
    """Have a window judged again whose rows a rebuild of the ledger found without raw. Publishing compares the rows."""
    connection.execute(
        'UPDATE onceover."window" SET expired_at = NULL, version = version + 1 '
        "WHERE pipeline = %s AND window_start = %s AND kept_hash IS NOT NULL",
        [pipeline, window_start],
    )


def list_wanted(connection: Connection, pipeline: str, request_id: int | None = None) -> tuple[Reread, ...]:
    """Return the ranges still to be read again, in the order of their requests; of one request, if given. Leaves out
    those of windows that have expired since."""
    rows = connection.execute(
        """
        SELECT reread_id, window_start, contract_version, generation, kafka_partition, start_offset, end_offset
        FROM onceover.reread r JOIN onceover."window" w USING (pipeline, window_start)
        WHERE r.pipeline = %s AND r.state = 'wanted' AND (%s::bigint IS NULL OR r.request_id = %s)
          AND w.expired_at IS NULL
        ORDER BY reread_id
        """,
        [pipeline, request_id, request_id],
    )
    return tuple(
        Reread(
            row["window_start"],
            row["contract_version"],
            read_range(row),
            row["reread_id"],
        )
        for row in rows
    )


def list_refused(connection: Connection, pipeline: str, request_id: int) -> tuple[tuple[OffsetRange, str], ...]:
    """Return the ranges of that request that were not read again, each with the reason."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, start_offset, end_offset, reason FROM onceover.reread "
        "WHERE pipeline = %s AND request_id = %s AND state = 'refused' ORDER BY reread_id",
        [pipeline, request_id],
    )
    return tuple((read_range(row), row["reason"]) for row in rows)


def finish(
    connection: Connection, epoch: Epoch, reread: Reread, batch_id: int | None = None, refused_why: str | None = None
) -> None:
    """Record that the range was appended, or refused and why; supersede the batch that read it, which lands nothing."""
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.execute(
            "UPDATE onceover.reread SET state = %s, reason = %s, finished_at = clock_timestamp() WHERE reread_id = %s",
            ["refused" if refused_why else "appended", refused_why, reread.reread_id],
        )
        connection.execute(
            "UPDATE onceover.batch SET state = 'superseded', superseded_at = clock_timestamp(), "
            "superseded_why = 'read again for one window file' WHERE batch_id = %s AND state = 'begun'",
            [batch_id],
        )


def read_unclaimed(connection: Connection, pipeline: str, window_start: datetime) -> ClaimedWindow | None:
    """Return the window with its landings as a repair would claim it, without a claim; None if it is unknown, or has
    expired with its raw."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
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
