"""Releases: batches that landed records out of quarantine, because a later contract has a place for them.

A release reads no offsets, so frontiers, holes and accounted ranges ignore it. Its IDs count by this release alone:
a batch that reads their offsets again finds the records unparseable, by the contract that they had, and quarantines
them once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from onceover.errors import FencedError, LandingMismatchError
from onceover.ledger import batches
from onceover.ledger.columns import read_range
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.model.batch import Landing, RangeRead
from onceover.model.offsets import OffsetRange
from onceover.model.release import Release


def read_releases(connection: Connection, batch_ids: Collection[int]) -> dict[int, Release]:
    """Return those of these batches that are releases."""
    return _read_releases(connection, "b.batch_id = ANY(%s)", list(batch_ids)) if batch_ids else {}


def list_releases(connection: Connection, pipeline: str) -> tuple[Release, ...]:
    """Return all releases of the pipeline."""
    return tuple(_read_releases(connection, "b.pipeline = %s", pipeline).values())


def land_release(
    connection: Connection,
    epoch: Epoch,
    batch_id: int,
    read: Sequence[RangeRead],
    landings: Sequence[Landing],
    ids: Iterable[OffsetRange],
    who: str,
    why: str,
) -> None:
    """Land a batch that took exactly `ids` out of quarantine. Raises as `land_batch`, LandingMismatchError also if not
    every ID landed in a window, FencedError also if an ID was released before."""
    ids = tuple(ids)
    landed = sum(landing.digest.records for landing in landings if landing.window_start is not None)
    if landed != sum(map(len, ids)):
        raise LandingMismatchError(f"{landed} of {sum(map(len, ids))} records landed in windows; nothing counts")
    with connection.transaction():
        batches.count_landings(connection, epoch, batch_id, read, landings)
        connection.execute("UPDATE onceover.batch SET who = %s, why = %s WHERE batch_id = %s", [who, why, batch_id])
        connection.cursor().executemany(
            "INSERT INTO onceover.released VALUES (%s, %s, %s, %s, %s)",
            [(batch_id, r.source.generation, r.source.kafka_partition, r.start, r.end) for r in ids],
        )
        twice = connection.execute(
            """
            SELECT o.batch_id FROM onceover.released n
            JOIN onceover.released o USING (generation, kafka_partition)
            JOIN onceover.batch b ON b.batch_id = o.batch_id
            WHERE n.batch_id = %(batch)s AND o.batch_id <> %(batch)s AND b.pipeline = %(pipeline)s
              AND n.start_offset < o.end_offset AND o.start_offset < n.end_offset LIMIT 1
            """,
            {"batch": batch_id, "pipeline": epoch.pipeline},
        ).fetchone()
        if twice:
            raise FencedError(f"batch {twice['batch_id']} has released some of these records; nothing landed")


def _read_releases(connection: Connection, condition: str, value: object) -> dict[int, Release]:
    rows = connection.execute(
        f"""
        SELECT b.batch_id, b.contract_version, r.generation, r.kafka_partition, r.start_offset, r.end_offset
        FROM onceover.released r JOIN onceover.batch b USING (batch_id)
        WHERE b.who IS NOT NULL AND {condition} ORDER BY 1, 3, 4, 5
        """,
        [value],
    )
    return {
        batch_id: Release(batch_id, of_batch[0]["contract_version"], tuple(map(read_range, of_batch)))
        for batch_id, grouped in groupby(rows, key=itemgetter("batch_id"))
        for of_batch in [list(grouped)]
    }
