"""Losses that a person accepts, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from onceover.config.endpoints import address
from onceover.ledger import frontiers, losses, refills
from onceover.ledger.database import Connection, connect
from onceover.ledger.migrate import upgrade_schema
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
SOURCE = KafkaPartition("0a1b2c3d", 0)
NOON, LATER = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 13, tzinfo=UTC)


def of(start: int, end: int) -> OffsetRange:
    return OffsetRange(SOURCE, start, end)


@pytest.fixture
def connection(stack: Stack) -> Iterator[Connection]:
    """A pipeline that skipped [110, 120) of its Kafka partition."""
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection, connection.transaction(force_rollback=True):
        connection.execute("INSERT INTO onceover.pipeline (name, contract_version) VALUES ('losses', 1)")
        connection.execute(
            "INSERT INTO onceover.kafka_partition VALUES ('losses', %s, 0, 'topic', 100, 110, 120, 120, NULL, NULL)",
            [SOURCE.generation],
        )
        connection.execute(
            "WITH b AS (INSERT INTO onceover.batch (pipeline, epoch, contract_version, state) "
            "VALUES ('losses', 1, 1, 'landed') RETURNING batch_id) "
            "INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset) "
            "SELECT batch_id, %s, 0, 100, 110 FROM b",
            [SOURCE.generation],
        )
        yield connection


def test_unreadable_offsets_are_settled_and_not_read_again(connection: Connection) -> None:
    request = connection.execute(
        "INSERT INTO onceover.repair_request (pipeline, who, why) VALUES ('losses', 'a', 'b') RETURNING request_id"
    ).fetchone()
    refills.record_refills(connection, "losses", (request or {})["request_id"], [of(110, 114), of(114, 120)])
    losses.record_loss(connection, "losses", [of(112, 114)], NOON, LATER, "me", "a bomb", unreadable=True)
    assert refills.list_wanted(connection, "losses") == (of(114, 120),)
    assert frontiers.read_holes(connection, "losses") == [of(110, 112), of(114, 120)]
    rows = connection.execute("SELECT kind FROM onceover.accepted_loss WHERE pipeline = 'losses'").fetchall()
    assert [row["kind"] for row in rows] == ["unreadable"]


def test_loss_of_expired_offsets_leaves_refills_alone(connection: Connection) -> None:
    losses.record_loss(connection, "losses", [of(110, 120)], NOON, LATER, "me", "gone")
    assert frontiers.read_holes(connection, "losses") == []
    rows = connection.execute("SELECT kind FROM onceover.accepted_loss WHERE pipeline = 'losses'").fetchall()
    assert [row["kind"] for row in rows] == ["lost"]
