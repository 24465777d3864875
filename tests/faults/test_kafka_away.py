"""A broker that dies while a batch reads from it."""

from __future__ import annotations

import psutil
import pytest
from tests.faults.conftest import Jobs
from tests.faults.ends import assert_counts_once, has_unread_request
from tests.integration.extras import produce
from tests.integration.lane import Lanes

from onceover.config.endpoints import address
from onceover.fault_points import Step
from onceover_local.stack import Stack
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]


def test_broker_killed_in_mid_read_costs_no_record(lanes: Lanes, jobs: Jobs, stack: Stack) -> None:
    lane = lanes()
    produce(lane, range(10))
    port = int(address("kafka").rpartition(":")[2])
    ingest = jobs("ingest.py", "--pipeline", lane.name)
    ingest.start(stop_after=Step.BEGUN)
    ingest.wait_until_held(120)
    psutil.Process(stack.find_pid("kafka")).suspend()  # so that the read does not end before the broker does
    ingest.resume()
    wait_for(lambda: has_unread_request(port), 60, "a read to be under way")
    stack.kill_part("kafka")
    assert lane.lines() == []
    stack.start_part("kafka")
    wait_for(lambda: "idle, every window closed" in ingest.read_log(), 120, "the driver to go on")
    assert ingest.stop() == 0
    assert_counts_once(lane, range(10))
