"""A pipeline of one key and one measure on a real ledger: its driver, or rows written by SQL that are rolled back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from bench.large_ledger import pipeline

from onceover.config.endpoints import address
from onceover.ledger import drivers, frontiers
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection, connect, upgrade_schema
from onceover.ledger.drivers import Epoch
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.offsets import KafkaPartition, OffsetRange

COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))
SOURCE = KafkaPartition("0a1b2c3d", 0)
NOON, ONE, TWO = (datetime(2026, 3, 1, hour, tzinfo=UTC) for hour in (12, 13, 14))


def of(start: int, end: int) -> OffsetRange:
    return OffsetRange(SOURCE, start, end)


def register(connection: Connection) -> RegisteredPipeline:
    """Register a pipeline of the test's own."""
    return register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS)


def drive(connection: Connection, name: str, *sources: KafkaPartition, end: int = 100) -> Epoch:
    """Become the driver of a pipeline that may read these Kafka partitions from 0 to `end`, by default the first."""
    epoch, starts = drivers.acquire(connection, name, "test"), dict.fromkeys(sources or (SOURCE,), Start(0, 0))
    frontiers.register_kafka_partitions(connection, epoch, "topic", starts, dict.fromkeys(starts, end))
    return epoch


def insert_window(connection: Connection, name: str, start: datetime = NOON, end: datetime = ONE) -> None:
    query = 'INSERT INTO onceover."window" (pipeline, window_start, window_end, day) VALUES (%s, %s, %s, %s)'
    connection.execute(query, [name, start, end, start.date()])


def change_window(connection: Connection, name: str, start: datetime, what: str) -> None:
    """Set columns of a window, as `what` says."""
    query = f'UPDATE onceover."window" SET {what} WHERE pipeline = %s AND window_start = %s'
    connection.execute(query, [name, start])


@contextmanager
def rolled_back(
    name: str, origin: int = 100, frontier: int = 100, reach: int = 100, *, closed: bool = False
) -> Iterator[Connection]:
    """Connect to the ledger with a pipeline of one Kafka partition, which ends where reading did; keep nothing."""
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection, connection.transaction(force_rollback=True):
        connection.execute(
            "INSERT INTO onceover.pipeline (name, contract_version, every_window_closed) VALUES (%s, 1, %s)",
            [name, closed],
        )
        connection.execute(
            "INSERT INTO onceover.kafka_partition VALUES (%s, %s, 0, 'topic', %s, %s, %s, %s, NULL, NULL)",
            [name, SOURCE.generation, origin, frontier, reach, reach],
        )
        yield connection


def insert_batch(
    connection: Connection,
    name: str,
    offsets: OffsetRange,
    *epochs: tuple[int, int],
    state: str = "landed",
    records: int = 1,
) -> None:
    """Write a batch that read one record under these leader epochs, or as many `records`."""
    connection.execute(
        "WITH b AS (INSERT INTO onceover.batch (pipeline, epoch, contract_version, state) "
        "VALUES (%s, 1, 1, %s) RETURNING batch_id) "
        "INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset, records, "
        "leader_epochs) SELECT batch_id, %s, 0, %s, %s, %s, %s FROM b",
        [name, state, offsets.source.generation, offsets.start, offsets.end, records, json.dumps(epochs)],
    )
