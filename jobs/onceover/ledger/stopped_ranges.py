"""Where Kafka partitions are stopped, at most at one range for each cause, and the offsets that no reader gets: ingest
is stopped before them until a person accepts their loss."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from onceover.ledger.catalog import record_poison
from onceover.ledger.columns import read_range
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.poison import PoisonRecord
from onceover.model.stopped_range import StopCause, StoppedRange

RETRY: Final = timedelta(minutes=10)
"""Until offsets that no reader got are read again: a batch that decompresses to gigabytes costs seconds each time."""
_KEY: Final = "WHERE pipeline = %s AND generation = %s AND kafka_partition = %s"


def list_stopped(connection: Connection, pipeline: str, cause: StopCause) -> list[StoppedRange]:
    """Return the ranges before which the pipeline's Kafka partitions are stopped for this cause, in order."""
    rows = connection.execute(
        f"""
        SELECT generation, kafka_partition, lower({cause}) AS start_offset, upper({cause}) AS end_offset,
          {cause}_why AS why, {cause}_at + %s < clock_timestamp() AS is_due
        FROM onceover.kafka_partition WHERE pipeline = %s AND {cause} IS NOT NULL ORDER BY 1, 2
        """,
        [RETRY, pipeline],
    )
    return [StoppedRange(read_range(r), r["why"], r["is_due"]) for r in rows]


def record_stopped(connection: Connection, epoch: Epoch, cause: StopCause, found: Iterable[StoppedRange]) -> None:
    """Record before which ranges Kafka partitions are stopped from now on, or still: a later range of a Kafka partition
    takes the place of an earlier one of the same cause. Raises FencedError for a lost epoch."""
    with connection.transaction():
        require_epoch(connection, epoch)
        connection.cursor().executemany(
            f"UPDATE onceover.kafka_partition SET {cause} = int8range(%s, %s), {cause}_why = %s, "
            f"{cause}_at = clock_timestamp() {_KEY}",
            [
                (at.start, at.end, each.why, epoch.pipeline, at.source.generation, at.source.kafka_partition)
                for each in sorted(found, key=lambda each: each.offsets)
                for at in [each.offsets]
            ],
        )


def end_stopped(connection: Connection, pipeline: str, cause: StopCause, source: KafkaPartition) -> None:
    """Record that the Kafka partition is no longer stopped for this cause."""
    connection.execute(
        f"UPDATE onceover.kafka_partition SET {cause} = NULL, {cause}_why = NULL, {cause}_at = NULL {_KEY}",
        [pipeline, source.generation, source.kafka_partition],
    )


def end_suspect(
    connection: Connection, epoch: Epoch, source: KafkaPartition, found: Iterable[PoisonRecord] = ()
) -> None:
    """Record what the search in that Kafka partition has found, and that it is over. Raises FencedError for a lost
    epoch."""
    with connection.transaction():
        require_epoch(connection, epoch)
        record_poison(connection, epoch.pipeline, found)
        end_stopped(connection, epoch.pipeline, StopCause.SUSPECT, source)


def list_unreadable(connection: Connection, pipeline: str, generation: str) -> list[OffsetRange]:
    """Return the offsets of this generation that were accepted as unreadable, and that no batch has read since."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, start_offset, end_offset FROM onceover.accepted_loss "
        "WHERE pipeline = %s AND generation = %s AND kind = 'unreadable' AND relanded_at IS NULL ORDER BY 2, 3",
        [pipeline, generation],
    )
    return list(map(read_range, rows))


def list_known_unreadable(connection: Connection, pipeline: str, generation: str) -> tuple[OffsetRange, ...]:
    """Return the offsets of this generation that no reader gets: those accepted as such, and those before which ingest
    is stopped."""
    stopped = [each.offsets for each in list_stopped(connection, pipeline, StopCause.UNREADABLE)]
    return coalesce(
        [
            *list_unreadable(connection, pipeline, generation),
            *(each for each in stopped if each.source.generation == generation),
        ]
    )
