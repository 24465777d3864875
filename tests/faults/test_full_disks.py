"""No room for PostgreSQL's files or Spark's: a process whose files may not grow fails as on a full disk."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest
from tests.faults.ends import end_lease
from tests.integration.events import event
from tests.integration.extras import repair
from tests.integration.lane import Lane, Lanes
from tests.integration.other_ledger import open_server
from tests.integration.planted_failures import count_certified

from onceover.errors import TransientError

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
ROWS = 10_000
KEY_BYTES = 1_000
LARGEST_FILE = 16 << 20
"""A segment of PostgreSQL's log is as large, so that the log has room, and a table of that many long keys has none."""


@contextmanager
def limited_backend(pid: int, size: int) -> Iterator[None]:
    """Let no file of that connection's server process grow beyond so many bytes; the server's own user sets that."""
    with open_server() as server:

        def limit(most: str) -> None:
            server.execute(f"COPY (SELECT 1) TO PROGRAM 'prlimit --pid {pid} --fsize={most}:'".encode())

        limit(str(size))
        try:
            yield
        finally:
            limit("unlimited")


@contextmanager
def limited(pid: int) -> Iterator[None]:
    """Let no file of that process, or of those that it starts, grow at all."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def read_progress(lane: Lane) -> datetime:
    (row,) = lane.query(
        "SELECT progress_at FROM onceover.driver WHERE pipeline = %s AND superseded_at IS NULL", [lane.name]
    )
    at: datetime = row["progress_at"]
    return at


def test_spark_without_room_fails_the_attempt_alone(lanes: Lanes) -> None:
    lane = lanes(partitions=2)
    for kafka_partition in (0, 1):  # so many that several tasks share the batch, and shuffle it
        lane.produce([event(n % 10, amount=1) for n in range(ROWS)], kafka_partition)
    jvm: int = lane.spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    with lane.driver() as driver:
        before = read_progress(lane)
        with limited(jvm), pytest.raises(TransientError, match="File too large"):
            driver.turn()
        assert (lane.lines(), read_progress(lane)) == ([], before), "a failed try is no progress"
        assert driver.turn().records == 2 * ROWS
        assert read_progress(lane) > before
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (ROWS, ROWS, 1), (5.0, "a"): (ROWS, ROWS, 1)}
    assert count_certified(lane) == 2


def test_postgresql_without_room_is_named_and_costs_no_record(lanes: Lanes) -> None:
    lane, chance = lanes(), random.Random(18)
    keys = [chance.randbytes(KEY_BYTES).hex() for _ in range(ROWS)]
    lane.produce([event(0, key) for key in keys])
    with (
        pytest.raises(TransientError, match=r"could not extend file .*File too large.*whether its disk has room"),
        lane.driver() as driver,
        limited_backend(driver._connection.info.backend_pid, LARGEST_FILE),
    ):
        driver.turn()
    assert lane.aggregates() == {}
    end_lease(lane)
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(0.0, key): (1, 1, 1) for key in keys}
    assert count_certified(lane) == 1
