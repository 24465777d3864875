"""Spark that hangs or runs out of memory in the middle of a batch, or that a record keeps busy for ever."""

from __future__ import annotations

from contextlib import suppress

import psutil
import pytest
from tests.faults.conftest import Jobs, hold
from tests.faults.ends import assert_counts_once, pad
from tests.integration.events import EVENTS, event
from tests.integration.extras import produce, repair
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified

from onceover.errors import BusyError
from onceover.fault_points import Step
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]


def test_driver_whose_spark_hangs_is_replaced_once_it_is_killed(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes()
    produce(lane, range(10))
    # Cold: on a shared JVM the next job would take the late answer to this one's call for its own.
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name, cold=True), Step.BEGUN)
    (jvm,) = (p for p in psutil.Process(ingest.pid).children() if "java" in p.name())
    jvm.suspend()
    try:
        ingest.resume()
        beaten = read_heartbeat(lane)
        wait_for(lambda: read_heartbeat(lane) != beaten, 30, "the driver to live on")
        with pytest.raises(BusyError, match="has a driver already"), lane.driver():
            pass
        assert lane.lines() == []
        with lane.open() as context:
            assert context.ledger.execute("SELECT 1 FROM onceover.batch WHERE state = 'begun' AND pipeline = %s",
                                          [lane.name]).fetchone()  # fmt: skip
        ingest.kill()
        assert_counts_once(lane, range(10))
    finally:
        with suppress(psutil.NoSuchProcess):  # it died with ingest
            jvm.resume()
    assert lane.detect().judged == 0


def read_heartbeat(lane: Lane) -> object:
    return lane.query("SELECT max(heartbeat_at) AS heartbeat_at FROM onceover.driver WHERE pipeline = %s", [lane.name])[
        0
    ]


@pytest.mark.largest
def test_jvm_without_memory_reads_less_until_it_fits(lanes: Lanes, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    lane.produce([pad(event(0, amount=n), 2_000_000) for n in range(40)])
    # Spark refuses to start with less than 450 MB unless it runs as a test of itself.
    monkeypatch.setenv(
        "PYSPARK_SUBMIT_ARGS",
        "--master local[2] --driver-memory 120m --conf spark.testing.reservedMemory=1000000 pyspark-shell",
    )
    ingest = jobs("ingest.py", "--pipeline", lane.name, cold=True)
    ingest.start()
    wait_for(lambda: "is too large, the next reads at most" in ingest.read_log(), 300, "a batch that does not fit")
    wait_for(lambda: (0.0, "a") in lane.aggregates() and lane.aggregates()[0.0, "a"][0] == 40, 600, "all records")
    assert ingest.stop() == 0
    assert "OutOfMemoryError" in ingest.read_log()
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (40, sum(range(40)), 39)}
    assert count_certified(lane) == 1


BACKTRACKING = EVENTS.replace(
    '"value.kind"', r"""'''concat(value.kind, regexp_extract(value.kind, r'^(.*?,){{11}}P', 0))'''"""
)
ENDLESS = event(1, "1," * 100, 100)


@pytest.mark.largest
def test_record_that_never_ends_is_quarantined_alone(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes(BACKTRACKING, partitions=2)
    lane.produce([event(1, "a"), ENDLESS, event(2, "b"), ENDLESS, event(3, "a", 2)])
    lane.produce([event(4, "a")], kafka_partition=1)
    ingest = jobs("ingest.py", "--pipeline", lane.name, cold=True)
    ingest.start()
    wait_for(lambda: has_run(lane) and (0.0, "a") in lane.aggregates(), 600, "the other Kafka partition to go on")
    assert lane.reasons() == {}, "the search goes on"
    wait_for(lambda: len(lane.reasons()) == 2, 600, "the search to end")
    wait_for(lambda: (0.0, "b") in lane.aggregates(), 60, "the batch to land")
    assert ingest.stop() == 0
    assert lane.reasons() == {(0, 1): "SQL too slow: key kind", (0, 3): "SQL too slow: key kind"}
    assert lane.aggregates() == {(0.0, "a"): (3, 4, 2), (0.0, "b"): (1, 1, 1)}
    assert "ingest starts again" in ingest.read_log()


def has_run(lane: Lane) -> bool:
    return lane.query("SELECT WHERE to_regclass(%s) IS NOT NULL", [f"aggregates.{lane.name}"]) != []
