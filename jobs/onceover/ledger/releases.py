"""Releases: batches that landed records out of quarantine, because a later contract has a place for them.

A release reads no offsets, so nothing that is asked of offsets (frontiers, holes, what is accounted) knows of it. The
IDs that it took are its own from then on: whoever reads their offsets again, for whatever reason, finds them
unparseable as before, by the contract that they had, and quarantines them once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from onceover.errors import FencedError, LandingMismatchError
from onceover.ledger import batches
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.model.batch import Landing, RangeRead
from onceover.model.claim import Release
from onceover.model.offsets import KafkaPartition, OffsetRange


def read_releases(connection: Connection, batch_ids: Collection[int]) -> dict[int, Release]:
    """Those of these batches that are releases."""
    return _releases(connection, "b.batch_id = ANY(%s)", [list(batch_ids)]) if batch_ids else {}


def list_releases(connection: Connection, pipeline: str, generation: str | None = None) -> tuple[Release, ...]:
    """All releases of the pipeline, or what they took of one generation."""
    which = "b.pipeline = %s AND (%s::text IS NULL OR r.generation = %s)"
    return tuple(_releases(connection, which, [pipeline, generation, generation]).values())


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
    """As `batches.land`, for a batch that took exactly `ids` out of quarantine. Raises LandingMismatchError where not
    each of them has landed in a window, FencedError where one was released before."""
    ids = tuple(ids)
    landed = sum(one.digest.records for one in landings if one.window_start is not None)
    if landed != sum(map(len, ids)):
        raise LandingMismatchError(f"{landed} of {sum(map(len, ids))} records landed in windows; nothing counts")
    with connection.transaction():
        batches.count_landings(connection, epoch, batch_id, read, landings)
        connection.execute(
            "INSERT INTO onceover.release (batch_id, pipeline, who, why) VALUES (%s, %s, %s, %s)",
            [batch_id, epoch.pipeline, who, why],
        )
        connection.cursor().executemany(
            "INSERT INTO onceover.released VALUES (%s, %s, %s, %s, %s)",
            [(batch_id, r.source.generation, r.source.kafka_partition, r.start, r.end) for r in ids],
        )
        twice = connection.execute(
            """
            SELECT o.batch_id FROM onceover.released n JOIN onceover.released o USING (generation, kafka_partition)
            JOIN onceover.release e ON e.batch_id = o.batch_id
            WHERE n.batch_id = %(batch)s AND o.batch_id <> %(batch)s AND e.pipeline = %(pipeline)s
              AND n.start_offset < o.end_offset AND o.start_offset < n.end_offset LIMIT 1
            """,
            {"batch": batch_id, "pipeline": epoch.pipeline},
        ).fetchone()
        if twice:
            raise FencedError(f"batch {twice['batch_id']} has released some of these records; nothing landed")


def _releases(connection: Connection, which: str, values: Sequence[object]) -> dict[int, Release]:
    rows = connection.execute(
        f"""
        SELECT b.batch_id, b.contract_version, r.generation, r.kafka_partition, r.start_offset, r.end_offset
        FROM onceover.released r JOIN onceover.batch b USING (batch_id) WHERE {which} ORDER BY 1, 3, 4, 5
        """,
        values,
    ).fetchall()
    ranges: dict[int, list[OffsetRange]] = {}
    for row in rows:
        source = KafkaPartition(row["generation"], row["kafka_partition"])
        ranges.setdefault(row["batch_id"], []).append(OffsetRange(source, row["start_offset"], row["end_offset"]))
    versions: Mapping[int, int] = {row["batch_id"]: row["contract_version"] for row in rows}
    return {batch_id: Release(batch_id, versions[batch_id], tuple(found)) for batch_id, found in ranges.items()}
