"""Real crashes of a real release: the next one and a repair reach the same result from any leftovers."""

from __future__ import annotations

import pytest
from tests.faults.conftest import Jobs, hold
from tests.integration.cutover import assert_proved
from tests.integration.lane import Lanes
from tests.integration.planted_failures import wait_for_lease_end
from tests.integration.releases import accept_nameless, compute_expected, count_quarantined, produce_mixed

from onceover.fault_points import Step

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare, pytest.mark.largest]
STEPS = (Step.BEGUN, Step.APPENDED, Step.INCREMENTED, Step.LANDED)


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
