"""The poison records of each pipeline, and the end of a search for one."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.stopped_ranges import end_stopped
from onceover.model.offsets import KafkaPartition
from onceover.model.poison import PoisonRecord
from onceover.model.stopped_range import StopCause


def list_poison(connection: Connection, pipeline: str) -> tuple[PoisonRecord, ...]:
    """Return the pipeline's poison records, in order."""
    rows = connection.execute(
        "SELECT * FROM onceover.poison_record WHERE pipeline = %s "
        "ORDER BY generation, kafka_partition, record_offset, contract_version",
        [pipeline],
    )
    return tuple(
        PoisonRecord(
            KafkaPartition(row["generation"], row["kafka_partition"]),
            row["record_offset"],
            row["contract_version"],
            row["reason"],
            row["error"],
        )
        for row in rows
    )


def record_poison(connection: Connection, pipeline: str, found: Sequence[PoisonRecord]) -> None:
    """Record poison records; those that are known stay as they are."""
    connection.cursor().executemany(
        "INSERT INTO onceover.poison_record "
        "(pipeline, generation, kafka_partition, record_offset, contract_version, reason, error) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
        [
            (pipeline, r.source.generation, r.source.kafka_partition, r.offset, r.version, r.reason, r.error)
            for r in found
        ],
    )


def end_suspect(
    connection: Connection, epoch: Epoch, source: KafkaPartition, found: Sequence[PoisonRecord] = ()
) -> None:
    """Record what the search in that Kafka partition has found, and that it is over. Raises FencedError for a lost
    epoch."""
    with connection.transaction():
        require_epoch(connection, epoch)
        record_poison(connection, epoch.pipeline, found)
        end_stopped(connection, epoch.pipeline, StopCause.SUSPECT, source)
