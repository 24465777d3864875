"""Eager repair by a real ingest process: a window that a crash made wrong is right again without any other command."""

from __future__ import annotations

import pytest
from tests.faults.conftest import Jobs, hold
from tests.faults.ends import end_lease
from tests.integration.lane import Lanes, event
from tests.integration.planted_failures import count_certified

from onceover.fault_points import Step
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults]
EAGER = "[repair]\neager = true"


def test_eager_ingest_repairs_what_a_crash_miscounted(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes(idle_after="1s", more=EAGER)
    lane.produce([event(n, amount=1) for n in range(10)])
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.INCREMENTED)
    ingest.kill()
    end_lease(lane)
    ingest.start()
    wait_for(lambda: count_certified(lane) == 2, 120, "both windows to be certified")
    assert ingest.stop() == 0
    assert lane.aggregates() == {(0.0, "a"): (5, 5, 1), (5.0, "a"): (5, 5, 1)}
    assert 'requested by ingest ("eager repair"): confirmed' in lane.explain_text(0)
    assert lane.detect().judged == 0
