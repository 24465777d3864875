"""Rollups of batches that Kafka no longer holds: the same rows as one large batch, and nothing that a proof reads is
lost. The generator of histories writes what the product writes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from bench import large_ledger, ledger_history
from bench.ledger_history import History
from tests.onceover.ledger.written_history import Writer, read_rows

from onceover.config.endpoints import address
from onceover.ledger import rollups
from onceover.ledger.database import Connection, connect
from onceover.ledger.migrate import upgrade_schema
from onceover.model.offsets import OffsetRange
from onceover.model.rollup import plan_rollups
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def connection(stack: Stack) -> Iterator[Connection]:
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection:
        connection.execute("SET synchronous_commit = off")  # thousands of short transactions, none of which must last
        yield connection


def name() -> str:
    return f"h{uuid.uuid4().hex[:10]}"


def held_from(history: History, hour: int) -> list[OffsetRange]:
    """Return what Kafka's log holds once it has dropped the first hours."""
    first = hour * 3600 // history.batch_seconds + 1
    ends = [history.read_of(history.batches, p) for p in range(history.kafka_partitions)]
    return [OffsetRange(end.source, history.read_of(first, end.source.kafka_partition).start, end.end) for end in ends]


def roll_up(connection: Connection, history: History, hour: int) -> list[int]:
    """Roll up what Kafka dropped; return the numbers of batches that were joined."""
    held, joined = held_from(history, hour), []
    for run in plan_rollups(rollups.list_old_batches(connection, history.name, held)):
        assert rollups.roll_up(connection, history.name, run)
        joined.append(len(run))
    return joined


@pytest.mark.parametrize(
    ("seconds", "windows"), [(60, 4), pytest.param(5, 12, marks=pytest.mark.rare, id="an hour of batches of 5 s")]
)
def test_generated_rows_equal_rows_that_the_product_wrote(connection: Connection, seconds: int, windows: int) -> None:
    written, generated = (History(name(), windows, batch_seconds=seconds) for _ in range(2))
    writer = Writer(connection, written)
    writer.write()

    ours, theirs = (
        read_rows(connection, known) for known in (writer.known, ledger_history.build(connection, generated))
    )

    assert len(ours["batch"]) == windows * 300 // seconds
    for table, rows in ours.items():
        assert theirs[table] == rows, table


def test_rolled_up_rows_equal_those_of_one_batch_an_hour(connection: Connection) -> None:
    whole, by_hour = History(name(), 60, batch_seconds=30), History(name(), 60, rolled_hours=3, batch_seconds=30)
    known = ledger_history.build(connection, whole)

    assert roll_up(connection, whole, hour=3) == [120, 120, 120]

    ours, theirs = (read_rows(connection, each) for each in (known, ledger_history.build(connection, by_hour)))
    assert len(ours["batch"]) == 3 + 2 * 120
    for table, rows in ours.items():
        assert theirs[table] == rows, table
    assert large_ledger
