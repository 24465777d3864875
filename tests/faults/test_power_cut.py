"""All servers and the driver gone at one moment, as when the power is cut."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable

import psutil
import pytest
from tests.faults.conftest import Jobs
from tests.faults.ends import assert_counts_once
from tests.integration.lane import Lane
from tests.integration.orphans import produce

from onceover.fault_points import Step
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
SERVERS = {"kafka", "hdfs", "postgres"}
"""The groups that hold what counts. The page cache stays: torn appends and cut logs have tests of their own."""


def test_all_servers_killed_at_once_in_mid_batch_cost_no_record(
    lanes: Callable[..., Lane], jobs: Jobs, stack: Stack
) -> None:
    lane = lanes()
    produce(lane, range(10))
    lane.ingest()
    produce(lane, range(10, 20))
    ingest = jobs("ingest.py", "--pipeline", lane.name)
    ingest.start(stop_after=Step.APPENDED)
    ingest.wait_until_held(120)
    parts = [part for part in stack.list_statuses() if part.group in SERVERS]
    assert {(part.group, part.state) for part in parts} == {(group, "up") for group in SERVERS}
    leaders = [psutil.Process(part.pid) for part in parts if part.pid]
    every = [each for leader in leaders for each in (leader, *leader.children(recursive=True))]
    ingest.kill()
    for each in every:
        with contextlib.suppress(psutil.NoSuchProcess):  # a child may end with its parent
            each.send_signal(signal.SIGKILL)
    gone, left = psutil.wait_procs(every, timeout=30)
    assert (len(gone), left) == (len(every), [])
    assert {part.state for part in stack.list_statuses() if part.group in SERVERS} == {"dead"}
    assert set(stack.up(SERVERS)) == {part.name for part in parts}
    assert len(lane.lines()) == 20, "its append stays"
    assert_counts_once(lane, range(20))
