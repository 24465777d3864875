"""What an audit is given of a real ledger."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from bench.large_ledger import pipeline

from onceover.audit.store import read_statement
from onceover.ledger import batches, drivers, frontiers, repair_requests, rereads
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.rereads import Reread
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
    rereads.record_rereads(connection, name, request, [Reread(NOON, 1, OffsetRange(SOURCE, 5, 10))])
    batches.begin(connection, epoch, 1, [OffsetRange(SOURCE, 5, 10)], None)
    batches.begin(connection, epoch, 1, [OffsetRange(SOURCE, 20, 30)], None)
    assert read_statement(connection, name, None, None).begun == (OffsetRange(SOURCE, 20, 30),)
