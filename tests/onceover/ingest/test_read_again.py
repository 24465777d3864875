"""A range to read again that Kafka does not deliver, on a real ledger: the driver goes on with other batches."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NoReturn

import pytest
from bench.large_ledger import pipeline

from onceover.errors import TransientError
from onceover.ingest.read_again import append_damage, list_readable
from onceover.kafka import TopicFacts
from onceover.ledger import drivers, frontiers, read_again, repair_requests
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.read_again import ReadAgain
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCE = KafkaPartition("0a1b2c3d", 0)
LACKING = OffsetRange(SOURCE, 5, 10)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))


class Undeliverable:
    """The work of a batch with a record that the broker cannot deliver."""

    def append(self) -> NoReturn:
        raise TransientError("Spark failed: the broker does not deliver offset 7")


def test_range_that_kafka_does_not_deliver_is_refused(connection: Connection) -> None:
    known = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS)
    epoch = drivers.acquire(connection, known.name, "test")
    frontiers.register_kafka_partitions(connection, epoch, "topic", {SOURCE: Start(0, 0)}, {SOURCE: 100})
    request = repair_requests.create_request(connection, known.name, "me", "a test", {})
    connection.execute(
        'INSERT INTO onceover."window" (pipeline, window_start, window_end) VALUES (%s, %s, %s)',
        [known.name, NOON, NOON.replace(hour=13)],
    )
    read_again.request_ranges(connection, known.name, request, [ReadAgain(LACKING, NOON, 1)])
    facts = TopicFacts("events", "topic", SOURCE.generation, {0: 0}, {0: 100})

    def work(
        by: RegisteredPipeline, ranges: Sequence[OffsetRange], at: TopicFacts, only: datetime | None
    ) -> Undeliverable:
        return Undeliverable()

    (damage,) = list_readable(connection, epoch, facts)
    append_damage(connection, epoch, known, facts, damage, work)
    assert read_again.list_refused(connection, known.name, request) == (
        (LACKING, "Spark failed: the broker does not deliver offset 7"),
    )
    states = connection.execute("SELECT state FROM onceover.batch WHERE pipeline = %s", [known.name]).fetchall()
    assert states == [{"state": "superseded"}], "nothing is left in flight"
    assert list_readable(connection, epoch, facts) == [], "the next batch is any other"
