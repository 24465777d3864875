"""A broker that dies while a batch reads from it."""

from __future__ import annotations

import psutil
import pytest
from tests.faults.conftest import Jobs, hold
from tests.faults.ends import go_on, has_unread_request
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
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.BEGUN)
    psutil.Process(stack.find_pid("kafka")).suspend()  # so that the read does not end before the broker does
    ingest.resume()
    wait_for(lambda: has_unread_request(port), 60, "a read to be under way")
    stack.kill_part("kafka")
    assert lane.lines() == []
    stack.start_part("kafka")
    go_on(lane, ingest, range(10))
