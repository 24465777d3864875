"""What holds the watermark, how long records may wait unread, and whether the driver's loop works."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from tests.onceover.ledger.driven_pipeline import NOON, register

from onceover.cli.doctor.postgres import _check_ingest
from onceover.errors import FencedError
from onceover.ledger import batches, drivers, frontiers
from onceover.ledger.database import Connection
from onceover.ledger.frontiers import advance_watermark
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
GOOD, RUBBISH = KafkaPartition("0a1b2c3d", 0), KafkaPartition("0a1b2c3d", 1)


class Driver:
    """A driver of two Kafka partitions, one of which has nothing but records for quarantine."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.name = connection, register(connection).name
        self.epoch = drivers.acquire(connection, self.name, "test")

    def see(self, good: int, rubbish: int) -> None:
        starts = {GOOD: Start(0, 0), RUBBISH: Start(0, 0)}
        frontiers.register_kafka_partitions(self.connection, self.epoch, "t", starts, {GOOD: good, RUBBISH: rubbish})

    def land(
        self, source: KafkaPartition, start: int, end: int, newest: datetime | None, stamp: datetime = NOON
    ) -> None:
        offsets, digest = OffsetRange(source, start, end), Digest(end - start)
        batch_id = batches.begin(self.connection, self.epoch, 1, [offsets])
        read = RangeRead(offsets, digest, newest, stamp)
        landing = Landing(None, date(2026, 3, 1), 0, 1, True, (LandingPart(source, digest),))
        batches.land_batch(self.connection, self.epoch, batch_id, [read], [landing])

    def pass_time(self, by: timedelta) -> None:
        for table, clock, key in (
            ("kafka_partition", "caught_up_since", "pipeline"),
            ("pipeline", "held_since", "name"),
        ):
            self.connection.execute(
                f"UPDATE onceover.{table} SET {clock} = {clock} - %s WHERE {key} = %s", [by, self.name]
            )

    def advance(self) -> tuple[datetime | None, bool]:
        return advance_watermark(self.connection, self.epoch, GOOD.generation, HOUR, MINUTE)

    def read(self, column: str, table: str = "pipeline", more: str = "") -> Any:
        key = "name" if table == "pipeline" else "pipeline"
        query = f"SELECT {column} AS it FROM onceover.{table} WHERE {key} = %s {more}"
        return self.connection.execute(query, [self.name]).fetchall()[0]["it"]


@pytest.fixture
def driver(connection: Connection) -> Driver:
    return Driver(connection)


def test_rubbish_that_keeps_arriving_holds_no_watermark(driver: Driver) -> None:
    for turn in range(1, 4):
        driver.see(10 * turn, 10 * turn)  # both always have something to read
        driver.land(GOOD, 10 * turn - 10, 10 * turn, NOON + turn * HOUR)
        driver.land(RUBBISH, 10 * turn - 10, 10 * turn, None)
        moment, closed = driver.advance()
        driver.see(10 * turn, 10 * turn)
        driver.pass_time(40 * timedelta(seconds=1))
    assert (moment, closed) == (NOON + 2 * HOUR, False)


def test_unread_records_may_have_event_times_and_hold_it(driver: Driver) -> None:
    driver.see(10, 10)
    driver.land(GOOD, 0, 10, NOON)
    driver.land(RUBBISH, 0, 10, None)
    driver.see(10, 10)
    driver.pass_time(HOUR)
    driver.see(20, 20)
    driver.land(GOOD, 10, 20, NOON + HOUR)
    assert driver.advance() == (None, False)
    driver.land(RUBBISH, 10, 20, NOON - HOUR)
    assert driver.advance() == (NOON - 2 * HOUR, False), "an event time came: idle no more"


def test_watermark_is_held_only_while_others_are_beyond_it(driver: Driver) -> None:
    driver.see(10, 10)
    assert driver.advance() == (None, False)
    assert driver.read("held_since") is None, "no event time was seen yet"
    driver.land(GOOD, 0, 10, NOON)
    driver.advance()
    since = driver.read("held_since")
    assert since is not None
    driver.advance()
    assert driver.read("held_since") == since
    driver.land(RUBBISH, 0, 10, NOON - HOUR)
    assert driver.advance() == (NOON - 2 * HOUR, False)
    assert driver.read("held_since") is None, "it moved"
    driver.advance()
    assert driver.read("held_since") is not None
    driver.see(10, 10)
    driver.pass_time(HOUR)
    assert driver.advance() == (NOON - 2 * HOUR, True)
    assert driver.read("held_since") is None, "every window is closed"


def test_unread_records_are_no_older_than_the_last_batch(driver: Driver) -> None:
    driver.see(30, 0)
    driver.land(GOOD, 0, 10, NOON, NOON)
    driver.land(GOOD, 10, 20, NOON, NOON + HOUR)
    driver.land(GOOD, 0, 10, NOON, NOON + 9 * HOUR)  # a replay says nothing of the records after it
    assert driver.read("read_until", "kafka_partition", "AND kafka_partition = 0") == NOON + HOUR
    driver.land(GOOD, 20, 30, NOON, NOON)
    driver.see(30, 0)
    assert driver.read("read_until > now() - interval '1 minute'", "kafka_partition", "AND kafka_partition = 0")


def test_progress_is_of_the_loop_and_not_of_the_heart(driver: Driver) -> None:
    driver.connection.execute("UPDATE onceover.driver SET progress_at = %s WHERE pipeline = %s", [NOON, driver.name])
    drivers.beat(driver.connection, driver.epoch)
    assert driver.read("progress_at", "driver", "ORDER BY epoch DESC") == NOON
    drivers.report_progress(driver.connection, driver.epoch)
    assert driver.read("progress_at", "driver", "ORDER BY epoch DESC") > NOON
    drivers.end_epoch(driver.connection, driver.epoch)
    drivers.acquire(driver.connection, driver.name, "another")
    with pytest.raises(FencedError):
        drivers.report_progress(driver.connection, driver.epoch)


def test_endless_restarts_are_no_progress(driver: Driver) -> None:
    change = "UPDATE onceover.driver SET progress_at = %s, heartbeat_at = {} WHERE pipeline = %s"
    for heartbeat_at, keeps_clock in (("now() - interval '4 minutes'", True), ("now() - interval '6 minutes'", False)):
        driver.connection.execute(change.format(heartbeat_at), [NOON, driver.name])
        drivers.end_epoch(driver.connection, driver.epoch)
        driver.epoch = drivers.acquire(driver.connection, driver.name, "another")
        assert (driver.read("progress_at", "driver", "ORDER BY epoch DESC") == NOON) == keeps_clock


def test_doctor_names_a_driver_that_is_stalled(driver: Driver) -> None:
    assert list(_check_ingest(driver.connection, driver.name)) == []
    driver.connection.execute("UPDATE onceover.driver SET progress_at = %s WHERE pipeline = %s", [NOON, driver.name])
    drivers.beat(driver.connection, driver.epoch)
    (outcome,) = _check_ingest(driver.connection, driver.name)
    assert (outcome.state, "Ingest is stalled" in outcome.what) == ("wrong", True)
