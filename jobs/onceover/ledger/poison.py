"""The poison records of each pipeline, and the ranges in which one is searched for."""

from __future__ import annotations

from collections.abc import Sequence

from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.offset_columns import read_range
from onceover.model.offsets import KafkaPartition
from onceover.model.poison import PoisonRecord, SuspectRange


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


def list_suspect(connection: Connection, pipeline: str) -> list[SuspectRange]:
    """Return the ranges in which a poison record is searched for, in order."""
    rows = connection.execute(
        "SELECT * FROM onceover.suspect_range WHERE pipeline = %s ORDER BY generation, kafka_partition", [pipeline]
    )
    return [
        SuspectRange(
            read_range(r),
            r["contract_version"],
            r["why"],
        )
        for r in rows
    ]


def record_suspect(connection: Connection, epoch: Epoch, suspect: Sequence[SuspectRange]) -> None:
    """Record ranges to search, one a Kafka partition: a later one takes the place of an earlier."""
    with connection.transaction():
        require_epoch(connection, epoch)
        for each in suspect:
            at = each.offsets
            connection.execute(
                """
                INSERT INTO onceover.suspect_range
                  (pipeline, generation, kafka_partition, start_offset, end_offset, contract_version, why)
                VALUES (%s, %s, %s, %s, %s, %s, %s)
                ON CONFLICT (pipeline, generation, kafka_partition) DO UPDATE SET
                  start_offset = excluded.start_offset, end_offset = excluded.end_offset,
                  contract_version = excluded.contract_version, why = excluded.why, since = excluded.since
                """,
                [epoch.pipeline, at.source.generation, at.source.kafka_partition, at.start, at.end, each.version,
                 each.why],
            )  # fmt: skip


def end_suspect(
    connection: Connection, epoch: Epoch, source: KafkaPartition, found: Sequence[PoisonRecord] = ()
) -> None:
    """Record what the search in that Kafka partition has found, and that it waits no more."""
    with connection.transaction():
        require_epoch(connection, epoch)
        record_poison(connection, epoch.pipeline, found)
        connection.execute(
            "DELETE FROM onceover.suspect_range WHERE pipeline = %s AND generation = %s AND kafka_partition = %s",
            [epoch.pipeline, source.generation, source.kafka_partition],
        )
