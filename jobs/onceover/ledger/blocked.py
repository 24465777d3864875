"""Where Kafka partitions wait before offsets that no reader gets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.offset_columns import read_range
from onceover.model.blocked import Blocked
from onceover.model.offsets import KafkaPartition

RETRY: Final = timedelta(minutes=10)
"""Until offsets that no reader got are read again: a batch that decompresses to gigabytes costs seconds each time."""


def list_blocked(connection: Connection, pipeline: str) -> list[Blocked]:
    """Return the places at which ingest waits, in order."""
    rows = connection.execute(
        "SELECT *, tried_at + %s < clock_timestamp() AS is_due FROM onceover.blocked WHERE pipeline = %s "
        "ORDER BY generation, kafka_partition",
        [RETRY, pipeline],
    )
    return [
        Blocked(
            read_range(r),
            r["why"],
            r["is_due"],
        )
        for r in rows
    ]


def record_blocked(connection: Connection, epoch: Epoch, found: Sequence[Blocked]) -> None:
    """Record where these Kafka partitions wait from now on, or still wait."""
    with connection.transaction():
        require_epoch(connection, epoch)
        for each in found:
            at = each.offsets
            connection.execute(
                """
                INSERT INTO onceover.blocked AS b
                  (pipeline, generation, kafka_partition, start_offset, end_offset, why)
                VALUES (%s, %s, %s, %s, %s, %s)
                ON CONFLICT (pipeline, generation, kafka_partition) DO UPDATE SET
                  since = CASE WHEN b.start_offset = excluded.start_offset THEN b.since ELSE excluded.since END,
                  start_offset = excluded.start_offset, end_offset = excluded.end_offset, why = excluded.why,
                  tried_at = excluded.tried_at
                """,
                [epoch.pipeline, at.source.generation, at.source.kafka_partition, at.start, at.end, each.why],
            )


def end_blocked(connection: Connection, pipeline: str, source: KafkaPartition) -> None:
    """Record that the Kafka partition waits no more."""
    connection.execute(
        "DELETE FROM onceover.blocked WHERE pipeline = %s AND generation = %s AND kafka_partition = %s",
        [pipeline, source.generation, source.kafka_partition],
    )
