"""Releases of records whose offsets were read again, with another content: before the release, or after it."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime

import pytest
from bench.large_ledger import pipeline

from onceover.ledger import batches, conflicts, decisions, drivers, frontiers, suspicions
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.releases import land_release
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.conflict import Content, Decision
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack
NOON, ONE, END = (datetime(2026, 3, 1, hour, tzinfo=UTC) for hour in (12, 13, 14))
SOURCE = KafkaPartition("0a1b2c3d", 0)
ID = OffsetRange(SOURCE, 5, 6)
RECORD = Digest(1, 1, 2, 3, 4)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))


class Driver:
    """A driver of a pipeline with windows at noon and at one: offset 5 lands in quarantine, at noon, at one."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.name = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS).name
        self._epoch = drivers.acquire(connection, self.name, "test")
        frontiers.register_kafka_partitions(connection, self._epoch, "topic", {SOURCE: Start(0, 0)}, {SOURCE: 100})
        for start, end in ((NOON, ONE), (ONE, END)):
            connection.execute(
                'INSERT INTO onceover."window" (pipeline, window_start, window_end) VALUES (%s, %s, %s)',
                [self.name, start, end],
            )

    def read(self, start: datetime | None, leader_epoch: int) -> None:
        batch_id = batches.begin(self.connection, self._epoch, 1, [ID])
        read = [RangeRead(ID, RECORD, None, None, ((leader_epoch, ID.start),))]
        batches.land_batch(self.connection, self._epoch, batch_id, read, [_land(start)])

    def release(self) -> None:
        batch_id = batches.begin(self.connection, self._epoch, 1, (), None)
        read = [RangeRead(ID, RECORD, None, None)]
        land_release(self.connection, self._epoch, batch_id, read, [_land(ONE)], [ID], "me", "a test")

    def take_suspicions(self) -> list[tuple[OffsetRange, tuple[datetime, ...]]]:
        """Return the open suspicions, and settle them."""
        found = suspicions.list_suspicions(self.connection, self.name)
        suspicions.settle(self.connection, found)
        return [(each.offsets, each.windows) for each in found]

    def count_undecided(self) -> list[int]:
        found = conflicts.read_contested(self.connection, self.name, [NOON, ONE])
        return [found[start].undecided for start in (NOON, ONE) if start in found]


def _land(start: datetime | None) -> Landing:
    day = date(2026, 3, 1) if start is None else None
    return Landing(start, day, 0, 10, True, (LandingPart(SOURCE, RECORD),))


@pytest.fixture
def driver(connection: Connection) -> Driver:
    return Driver(connection)


def test_other_content_after_a_release_suspects_its_window(driver: Driver) -> None:
    driver.read(None, 1)
    driver.release()
    assert driver.take_suspicions() == [], "it was read once"
    driver.read(NOON, 2)
    assert driver.take_suspicions() == [(ID, (NOON, ONE))]


def test_release_after_a_decision_is_compared_and_undecided(driver: Driver) -> None:
    driver.read(None, 1)
    driver.read(NOON, 2)
    assert driver.take_suspicions() == [(ID, (NOON,))]
    old, new = Content(SOURCE, 5, "a" * 32, None, None), Content(SOURCE, 5, "b" * 32, NOON, NOON, 2)
    assert conflicts.record_contents(driver.connection, driver.name, [old, new]) == {NOON}
    chosen = Decision(SOURCE, 5, "bb")
    assert decisions.record_decision(driver.connection, driver.name, NOON, chosen, "me", "a test") == [NOON]

    driver.release()
    assert driver.take_suspicions() == [(ID, (NOON, ONE))]
    released = Content(SOURCE, 5, old.hash, ONE, ONE)
    assert conflicts.record_contents(driver.connection, driver.name, [released, new]) == {NOON, ONE}
    assert conflicts.record_contents(driver.connection, driver.name, [released, new]) == set(), "nothing is new"
    assert driver.count_undecided() == [0, 1], "the decision was about noon alone"
    assert decisions.record_decision(driver.connection, driver.name, ONE, chosen, "me", "a test") == [NOON, ONE]
    assert driver.count_undecided() == [0, 0]
