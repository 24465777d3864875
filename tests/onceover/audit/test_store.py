"""What an audit is given of a real ledger."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from bench import large_ledger
from bench.large_ledger import pipeline

from onceover.audit.store import choose_certified, read_statement
from onceover.ledger import batches, drivers, frontiers, read_again, repair_requests
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.read_again import ReadAgain
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCE = KafkaPartition("0a1b2c3d", 0)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))


def test_statement_leaves_a_reread_in_flight_out(connection: Connection) -> None:
    name = f"s{uuid.uuid4().hex[:10]}"
    register_pipeline(connection, pipeline(name), COLUMNS)
    epoch = drivers.acquire(connection, name, "test")
    frontiers.register_kafka_partitions(connection, epoch, "topic", {SOURCE: Start(0, 0)}, {SOURCE: 100})
    request = repair_requests.create_request(connection, name, "me", "a test", {})
    read_again.request_ranges(connection, name, request, [ReadAgain(OffsetRange(SOURCE, 5, 10), NOON, 1)])
    batches.begin(connection, epoch, 1, [OffsetRange(SOURCE, 5, 10)], None)
    batches.begin(connection, epoch, 1, [OffsetRange(SOURCE, 20, 30)], None)
    assert read_statement(connection, name, None, None).begun == (OffsetRange(SOURCE, 20, 30),)


def test_random_window_is_certified_small_and_the_seeds(connection: Connection) -> None:
    name = f"s{uuid.uuid4().hex[:10]}"
    ledger = large_ledger.build(connection, name, 12)
    try:
        some = [large_ledger.start_of(n) for n in range(12)]

        def choose(seed: int, most_records: int = 10**9, most_bytes: int = 10**12) -> datetime | None:
            return choose_certified(connection, name, str(seed), most_records=most_records, most_bytes=most_bytes)

        with large_ledger.uncertified(connection, ledger, some[:3]):
            chosen = [choose(seed) for seed in range(100)]
            assert set(chosen) == set(some[3:]), "each of them at times"
            assert [choose(seed) for seed in range(100)] == chosen
            assert (choose(1, most_records=0), choose(1, most_bytes=0)) == (None, None)
        connection.execute('UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s', [name])
        assert choose(1) is None
    finally:
        large_ledger.drop(connection, ledger)
