"""Real crashes of a real compaction and a real release: the next one reaches the same result from any leftovers."""

from __future__ import annotations

import pytest
from tests.faults.conftest import Jobs, hold
from tests.integration.cutover import assert_proved
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import wait_for_lease_end
from tests.integration.releases import accept_nameless, compute_expected, count_quarantined, produce_mixed

from onceover.fault_points import CompactStep, Step

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
STEPS = (Step.BEGUN, Step.APPENDED, Step.INCREMENTED, Step.LANDED)


@pytest.mark.parametrize("step", CompactStep)
def test_killed_compaction_is_done_again_from_the_start(lanes: Lanes, jobs: Jobs, step: CompactStep) -> None:
    lane = lanes()
    lane.land([event(n, amount=n) for n in range(15)])
    assert lane.detect().certified == 3
    text = set(lane.raw())
    killed = jobs("compact.py", "--pipeline", lane.name, "--older-than-ms", "0", "--who", "test", "--why", "a test")
    hold(killed, step, count=2 if step is CompactStep.PLACED else 1)
    left = [name.startswith("compacting/") for name in lane.raw() if name.endswith(".zst")]
    assert sorted(left) == ([True] * 3 if step is CompactStep.WRITTEN else [False, False, True])
    killed.kill()
    noted = 1 if step is CompactStep.PLACED else 0
    assert count_compacted(lane) == noted, "what is placed and not noted is not there"

    assert [one.why for one in lane.compact()] == [None] * (3 - noted)
    assert count_compacted(lane) == 3
    assert {name.split(".")[0] for name in set(lane.raw()) - text} == {
        "2026-03-01/1200", "2026-03-01/1205", "2026-03-01/1210",
    }  # fmt: skip
    assert len(lane.raw()) == 6, "one file a window beside its text"


def count_compacted(lane: Lane) -> int:
    (row,) = lane.query('SELECT count(compacted_bytes) AS n FROM onceover."window" WHERE pipeline = %s', [lane.name])
    return int(row["n"])


@pytest.mark.largest
@pytest.mark.parametrize("step", STEPS)
def test_killed_release_resumes_at_its_step(lanes: Lanes, jobs: Jobs, step: Step) -> None:
    lane = lanes(partitions=2, most=5)
    produce_mixed(lane, 0, 20)
    lane.ingest()
    lane.detect()
    accept_nameless(lane)
    arguments = ("release.py", "--pipeline", lane.name, "--who", "test", "--why", "a test")
    killed = hold(jobs(*arguments), step, count=2)
    killed.kill()
    assert count_quarantined(lane)[1] == (10 if step is Step.LANDED else 5), "what has landed stays landed"

    wait_for_lease_end(lane)

    again = jobs(*arguments)
    again.start()
    assert again.wait(120) == 0, again.read_last_line()
    assert count_quarantined(lane) == (4, 12)
    detection = lane.detect()
    if detection.request_id:
        assert lane.repair(detection.request_id).failed == ()
    assert lane.aggregates() == compute_expected(lane)
    assert_proved(lane, 0, 15)
