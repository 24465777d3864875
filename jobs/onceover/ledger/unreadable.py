"""Offsets that Kafka's log holds and no reader gets, as a person accepted."""

from __future__ import annotations

from onceover.ledger.database import Connection
from onceover.ledger.stopped_ranges import list_stopped
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.stopped_range import StopCause


def list_unreadable(connection: Connection, pipeline: str, generation: str) -> list[OffsetRange]:
    """Return the offsets of this generation that were accepted as unreadable, and that no batch has read since."""
    rows = connection.execute(
        "SELECT kafka_partition, start_offset, end_offset FROM onceover.accepted_loss "
        "WHERE pipeline = %s AND generation = %s AND kind = 'unreadable' AND relanded_at IS NULL ORDER BY 1, 2",
        [pipeline, generation],
    )
    return [
        OffsetRange(KafkaPartition(generation, row["kafka_partition"]), row["start_offset"], row["end_offset"])
        for row in rows
    ]


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
