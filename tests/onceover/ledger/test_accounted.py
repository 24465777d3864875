"""Accounted offsets, compared with the union of all landed ranges under any overlap and any loss."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.onceover.ledger.driven_pipeline import SOURCE, insert_batch, rolled_back

from onceover.ledger.database import Connection
from onceover.ledger.frontiers import advance
from onceover.ledger.landed_offsets import read_accounted, read_settled
from onceover.model.offsets import OffsetRange, coalesce, subtract
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


@pytest.fixture
def connection(stack: Stack) -> Iterator[Connection]:
    with rolled_back("accounts") as connection:
        yield connection


def batch(connection: Connection, offsets: OffsetRange, state: str = "landed", records: int = 1) -> None:
    insert_batch(connection, "accounts", offsets, state=state, records=records)
    if state == "landed":
        advance(connection, "accounts", [offsets])


def release(connection: Connection, offsets: OffsetRange) -> None:
    connection.execute(
        "WITH b AS (INSERT INTO onceover.batch (pipeline, epoch, contract_version, state) "
        "VALUES ('accounts', 1, 1, 'landed') RETURNING batch_id) "
        "INSERT INTO onceover.released SELECT batch_id, %s, 0, %s, %s FROM b",
        [SOURCE.generation, offsets.start, offsets.end],
    )


def lose(connection: Connection, lost: OffsetRange) -> None:
    connection.execute(
        "INSERT INTO onceover.accepted_loss (pipeline, generation, kafka_partition, start_offset, end_offset, "
        "first_window, end_window, who, why) VALUES ('accounts', %s, 0, %s, %s, '2026-01-01', '2026-01-02', 'a', 'b')",
        [SOURCE.generation, lost.start, lost.end],
    )
    advance(connection, "accounts", [lost])


@pytest.mark.parametrize("seed", range(40))
def test_accounted_are_landed_offsets_but_losses_read_as_empty(connection: Connection, seed: int) -> None:
    chance = random.Random(seed)
    landed: list[OffsetRange] = []
    empty: list[OffsetRange] = []
    lost: list[OffsetRange] = []
    for _ in range(chance.randrange(1, 14)):
        start = chance.randrange(60, 220)
        offsets = OffsetRange(SOURCE, start, start + chance.randrange(1, 40))
        state = chance.choice(["landed", "landed", "empty", "superseded", "begun", "lost", "released"])
        if state in ("lost", "released"):
            lose(connection, offsets)
            lost.append(offsets)
            if state == "released":
                landed.append(OffsetRange(SOURCE, start, start + 1))
                release(connection, landed[-1])
        elif state == "empty":
            batch(connection, offsets, records=0)
            empty.append(offsets)
        else:
            batch(connection, offsets, state)
            landed += [offsets] if state == "landed" else []

    accounted = coalesce([*landed, *subtract(coalesce(empty), coalesce(lost))])
    assert read_accounted(connection, "accounts") == list(accounted)
    assert read_settled(connection, "accounts") == coalesce([*accounted, *lost])


def test_ranges_of_another_pipeline_of_the_topic_do_not_count(connection: Connection) -> None:
    connection.execute("INSERT INTO onceover.pipeline (name, contract_version) VALUES ('others', 1)")
    batch(connection, OffsetRange(SOURCE, 150, 160))
    connection.execute("UPDATE onceover.batch SET pipeline = 'others' WHERE pipeline = 'accounts'")

    assert list(read_accounted(connection, "accounts")) == []
