"""Real crashes of a real repair process, and two of them at once on one request."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.conftest import Jobs, hold
from tests.faults.ends import read_everything
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import land_twice, minutes, spoil

from onceover.config.endpoints import address, home
from onceover.fault_points import RepairStep
from onceover.repair.confirmation import confirm

pytestmark = [pytest.mark.stack, pytest.mark.faults]


def test_killed_repair_is_finished_and_a_paused_one_is_void(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes()
    land_twice(lane, [event(n, amount=n) for n in range(15)])
    request = lane.detect().request_id or 0
    right = {(float(m), "a"): (5, sum(range(m, m + 5)), m + 4) for m in (0, 5, 10)}
    paused, killed = (jobs("repair.py", "--pipeline", lane.name, "--request", str(request)) for _ in range(2))
    hold(paused, RepairStep.STAGED)
    assert list_states(lane) == ["claimed"] * 3
    hold(killed, RepairStep.PUBLISHED)
    killed.kill()
    assert list_states(lane) == ["published", "claimed", "claimed"]
    assert [lane.aggregates()[key] == row for key, row in right.items()] == [True, False, False]

    confirmation = lane.repair(request)
    assert len(confirmation.confirmed) == 3
    assert lane.aggregates() == right
    before = read_everything(lane)
    paused.resume()
    assert paused.wait(60) == 0
    assert "3 changed meanwhile" in paused.read_last_line()
    assert read_everything(lane) == before
    assert lane.detect().judged == 0


GROUPS_OF_ONE = """
import runpy
from onceover.repair import groups
groups.MAX_WINDOWS = 1
runpy.run_path({job!r}, run_name="__main__")
"""


@pytest.mark.rare
def test_repair_killed_between_groups_goes_on_with_the_next(lanes: Lanes, jobs: Jobs, tmp_path: Path) -> None:
    lane, script = lanes(), tmp_path / "repair_in_groups.py"
    script.write_text(GROUPS_OF_ONE.format(job=str(home() / "jobs" / "repair.py")))
    land_twice(lane, [event(n, amount=n) for n in range(15)])
    request = lane.detect().request_id or 0
    killed, second = (
        jobs(str(script), "--pipeline", lane.name, "--request", str(request), cold=True) for _ in range(2)
    )
    hold(killed, RepairStep.CLAIMED, count=2)
    killed.kill()
    assert list_states(lane) == ["published", "claimed", "planned"]
    other = lane.detect(minutes(10, 15)).request_id or 0
    assert lane.repair(other).confirmed == ("2026-03-01T12:10Z",), "a later group's window is held by nothing"
    second.start()
    assert second.wait(120) == 0
    assert "1 repaired" in second.read_last_line(), "the first group is not repaired again"
    with lane.open() as context:
        confirmation = confirm(context, request)
    assert confirmation.confirmed == ("2026-03-01T12:00Z", "2026-03-01T12:05Z")
    assert confirmation.unneeded == (("2026-03-01T12:10Z", "certified meanwhile"),)
    assert lane.aggregates() == {(float(m), "a"): (5, sum(range(m, m + 5)), m + 4) for m in (0, 5, 10)}


@pytest.mark.rare
def test_unreadable_block_fails_its_own_window_only(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [event(n, amount=n) for n in range(15)])
    request = lane.detect().request_id or 0
    spoil(lane, lane.window_file(5))
    confirmation = lane.repair(request)
    assert confirmation.confirmed == ("2026-03-01T12:00Z", "2026-03-01T12:10Z")
    assert [(window, why.split(":")[0]) for window, why in confirmation.failed] == [
        ("2026-03-01T12:05Z", "reading raw failed")
    ]
    assert lane.aggregates()[(5.0, "a")] == (10, 70, 9), "it stays as it was"


@pytest.mark.rare
def test_file_left_open_by_a_dead_writer_is_closed_and_repaired(lanes: Lanes) -> None:
    lane = lanes()
    land_twice(lane, [event(n) for n in range(5)])
    request = lane.detect().request_id or 0
    path = lane.window_file(0)
    jvm = lane.spark.sparkContext._jvm
    assert jvm
    hadoop = jvm.org.apache.hadoop
    writer = hadoop.fs.FileSystem.newInstance(  # a client of its own, as a dead process had
        hadoop.fs.Path(address("hdfs")).toUri(), lane.spark.sparkContext._jsc.hadoopConfiguration()
    )
    stream = writer.append(hadoop.fs.Path(path))
    stream.write(bytearray(b"half a li"))
    stream.hflush()
    assert len(lane.repair(request).confirmed) == 1
    assert lane.aggregates() == {(0.0, "a"): (5, 5, 1)}
    # The same before an append: the attempt that finds the file held frees it, the next one lands.
    writer.append(hadoop.fs.Path(path)).hflush()
    lane.produce([event(1)])
    with lane.driver() as driver:
        with pytest.raises(Exception, match="the next try recovers its lease"):
            driver.turn()
        assert driver.turn().records == 1


def list_states(lane: Lane) -> list[str]:
    rows = lane.query("SELECT state FROM onceover.repair WHERE pipeline = %s ORDER BY window_start", [lane.name])
    return [row["state"] for row in rows]
