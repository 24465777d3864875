"""Transactions that write to the same windows and Kafka partitions at once, each on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from threading import Barrier

import pytest
from tests.onceover.ledger.driven_pipeline import NOON, ONE, TWO, drive, insert_window, register

from onceover.config.endpoints import address
from onceover.errors import BusyError, FencedError, OnceoverError
from onceover.ledger import batches, drivers, log_cuts, losses
from onceover.ledger.database import Connection, connect
from onceover.ledger.drivers import Epoch
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.digest import EMPTY, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.rare]
FIRST, SECOND = KafkaPartition("0a1b2c3d", 0), KafkaPartition("0a1b2c3d", 1)
RECORD = Digest(1, 1, 2, 3, 4)


class Writers:
    """A pipeline of two windows and two Kafka partitions, a connection of the test's, and another in a thread."""

    def __init__(self, own: Connection, other: Connection, pool: ThreadPoolExecutor) -> None:
        self.own, self._other, self._pool = own, other, pool
        self.name = register(own).name
        self.epoch = drive(own, self.name, FIRST, SECOND)
        for start, end in ((NOON, ONE), (ONE, TWO)):
            insert_window(own, self.name, start, end)

    def lock_window(self, start: datetime) -> None:
        self.own.execute(
            'SELECT 1 FROM onceover."window" WHERE pipeline = %s AND window_start = %s FOR UPDATE NOWAIT',
            [self.name, start],
        )

    def lock_partition(self, number: int) -> None:
        self.own.execute(
            "SELECT 1 FROM onceover.kafka_partition WHERE pipeline = %s AND kafka_partition = %s FOR UPDATE NOWAIT",
            [self.name, number],
        )

    def start(self, write: Callable[[Connection], object]) -> Future[object]:
        """Run this on the other connection, and wait until it waits for a lock of the test's."""
        running = self._pool.submit(write, self._other)
        other, own = self._other.info.backend_pid, self.own.info.backend_pid

        def is_waiting() -> bool:
            row = self.own.execute("SELECT %s = ANY(pg_blocking_pids(%s)) AS waits", [own, other]).fetchone()
            return running.done() or bool(row and row["waits"])

        wait_for(is_waiting, 20, "the other connection to wait")
        return running

    def land(self, start: datetime, *read: RangeRead) -> Callable[[Connection], object]:
        """Begin a batch of these ranges; return what lands the records of the first range in that window."""
        batch_id = batches.begin(self.own, self.epoch, 1, [piece.offsets for piece in read])
        parts = (LandingPart(read[0].offsets.source, read[0].digest),)
        landings = [Landing(start, None, 0, 10, True, parts)]
        return lambda connection: batches.land_batch(connection, self.epoch, batch_id, read, landings)


@pytest.fixture
def writers(connection: Connection) -> Iterator[Writers]:
    with connect(address("postgres"), "test") as other, ThreadPoolExecutor(1) as pool:
        yield Writers(connection, other, pool)


def read(source: KafkaPartition, start: int, records: int = 1) -> RangeRead:
    return RangeRead(OffsetRange(source, start, start + 1), RECORD if records else EMPTY, None, None, ((0, start),))


def test_windows_are_locked_before_kafka_partitions(writers: Writers) -> None:
    writers.land(NOON, read(FIRST, 0))(writers.own)
    writers.land(NOON, read(FIRST, 2))(writers.own)
    lost = [OffsetRange(FIRST, 1, 2)]
    with writers.own.transaction():
        writers.lock_window(NOON)
        running = writers.start(lambda other: losses.record_loss(other, writers.name, lost, NOON, ONE, "me", "a test"))
        writers.lock_partition(0)
    assert running.result(20) == [NOON]


def test_landing_locks_kafka_partitions_in_order(writers: Writers) -> None:
    land = writers.land(NOON, read(SECOND, 0), read(FIRST, 0, records=0))
    with writers.own.transaction():
        writers.lock_partition(0)
        running = writers.start(land)
        writers.lock_partition(1)
    running.result(20)


def test_landing_sees_a_loss_accepted_while_it_waited(writers: Writers) -> None:
    lost = OffsetRange(FIRST, 5, 6)
    writers.own.execute(
        "UPDATE onceover.kafka_partition SET reach = 6 WHERE pipeline = %s AND kafka_partition = 0", [writers.name]
    )
    with writers.own.transaction():
        losses.record_loss(writers.own, writers.name, [lost], NOON, ONE, "me", "a test")
        land = writers.land(ONE, read(FIRST, 5))
        running = writers.start(land)
    with pytest.raises(BusyError, match="1 more windows are concerned"):
        running.result(20)
    assert losses.list_stating(writers.own, writers.name, [lost]) == [NOON]
    land(writers.own)
    assert losses.list_stating(writers.own, writers.name, [lost]) == [], "it landed after all"


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda other, epoch: batches.begin(other, epoch, 1, [OffsetRange(FIRST, 0, 1)]), FencedError),
        (lambda other, epoch: drivers.acquire(other, epoch.pipeline, "third"), BusyError),
        (
            lambda other, epoch: log_cuts.record_comparison(
                other, epoch.pipeline, OffsetRange(FIRST, 0, 1), (), None, 0, None
            ),
            BusyError,
        ),
    ],
    ids=["the old driver", "another driver", "detection"],
)
def test_takeover_refuses_those_that_waited_for_it(
    writers: Writers, act: Callable[[Connection, Epoch], object], error: type[OnceoverError]
) -> None:
    drivers.end_epoch(writers.own, writers.epoch)
    with writers.own.transaction():
        drivers.acquire(writers.own, writers.name, "second")
        running = writers.start(lambda other: act(other, writers.epoch))
        assert not running.done()
    with pytest.raises(error):
        running.result(20)


def test_takeover_waits_for_a_transaction_of_the_old_driver(writers: Writers) -> None:
    drivers.end_epoch(writers.own, writers.epoch)
    with writers.own.transaction():
        drivers.require_epoch(writers.own, writers.epoch)
        running = writers.start(lambda other: drivers.acquire(other, writers.name, "second"))
        assert not running.done()
        drivers.report_progress(writers.own, writers.epoch)
    running.result(20)
    with pytest.raises(FencedError):
        drivers.beat(writers.own, writers.epoch)


def test_deadlock_is_reported_without_a_traceback(writers: Writers) -> None:
    name, met = writers.name, Barrier(2)
    errors: list[OnceoverError] = []

    def lock_both(first: int, second: int) -> None:
        try:
            with connect(address("postgres"), "test") as connection, connection.transaction():
                for number in (first, second):
                    connection.execute(
                        "UPDATE onceover.kafka_partition SET end_offset = 1 "
                        "WHERE pipeline = %s AND kafka_partition = %s",
                        [name, number],
                    )
                    if number == first:
                        met.wait(20)
        except OnceoverError as error:
            errors.append(error)

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(lock_both, *order) for order in ((0, 1), (1, 0))]
    for each in running:
        each.result()
    assert [(type(error), "try again" in str(error)) for error in errors] == [(BusyError, True)]
