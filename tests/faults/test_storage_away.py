"""HDFS that dies, fills up or loses its answer while a batch appends; a broker that dies while it reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from urllib.parse import urlparse

import psutil
import pytest
import requests
from tests.faults.conftest import Jobs, hold_ingest
from tests.faults.ends import assert_counts_once, fail_attempt, find_datanode, go_on, has_unread_request, pad
from tests.faults.held_appends import Held, append_held_at_its_end, append_held_midway
from tests.faults.proxy import CutError, Proxy
from tests.integration.events import event
from tests.integration.extras import produce
from tests.integration.lane import Lane, Lanes

from onceover.config.endpoints import address
from onceover.errors import TransientError
from onceover.fault_points import Step
from onceover_local.stack import Stack
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
NO_QUOTA = -1
Hold = Callable[[], AbstractContextManager[Held]]


@pytest.mark.parametrize(
    ("known", "hold"),
    [(0, lambda: append_held_midway(600_000)), (10, append_held_at_its_end)],
    ids=["new", "known"],
)
def test_namenode_killed_in_mid_append_costs_no_record(
    lanes: Lanes, jobs: Jobs, stack: Stack, known: int, hold: Hold
) -> None:
    lane = lanes()
    records = [pad(event(n % 10, amount=n), 40_000) for n in range(60)]
    if known:
        lane.produce(records[:known])
        lane.ingest()
    lane.produce(records[known:])
    with hold() as (environment, held, resume):
        ingest = jobs("ingest.py", "--pipeline", lane.name)
        ingest.start(environment=environment)
        assert held.wait(120)
        stack.kill_part("namenode")
        stack.start_part("namenode")
        resume.set()
        go_on(lane, ingest, range(60))


def test_all_datanodes_away_fail_the_attempt_alone(lanes: Lanes, jobs: Jobs, stack: Stack) -> None:
    lane = lanes()
    ingest = hold_ingest(lane, jobs, Step.BEGUN)
    stack.kill_part("datanode1")
    try:
        fail_attempt(ingest)
    finally:
        stack.start_part("datanode1")
    go_on(lane, ingest, range(10))


def set_space_quota(lane: Lane, size: int) -> None:
    """Allow the pipeline's folder so many bytes, as `hdfs dfsadmin -setSpaceQuota` does."""
    folder = f"{address('webhdfs')}/webhdfs/v1{lane.layout.raw_root}/{lane.name}"
    given = {"op": "SETQUOTA", "storagespacequota": str(size), "user.name": "root"}
    requests.put(folder, params=given, timeout=30).raise_for_status()


def test_hdfs_over_quota_is_named_and_costs_no_record(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes()
    ingest = hold_ingest(lane, jobs, Step.BEGUN)
    set_space_quota(lane, 1000)
    fail_attempt(ingest)
    set_space_quota(lane, NO_QUOTA)
    (failed,) = (line for line in ingest.read_log().splitlines() if "attempt 1 of 5" in line)
    assert "quota" in failed
    go_on(lane, ingest, range(10))


def test_append_whose_reply_is_lost_is_read_again(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    produce(lane, range(10))
    is_appending, is_lost = threading.Event(), threading.Event()

    def see_append(request: bytes) -> bytes:
        if b"/2026-03-01/" in request:
            is_appending.set()
        return request

    def lose_first(answer: bytes) -> bytes:
        # Before the body has arrived, a DataNode answers `100 Continue`.
        if is_lost.is_set() or not is_appending.is_set() or not (b" 200 " in answer or b" 201 " in answer):
            return answer
        is_lost.set()
        raise CutError

    datanode, namenode = find_datanode(), urlparse(address("webhdfs")).netloc
    with (
        Proxy(datanode, see_append, lose_first) as behind,
        Proxy(namenode, to_client=lambda data: data.replace(datanode.encode(), behind.address.encode())) as before,
        monkeypatch.context() as patch,
    ):
        patch.setenv("ONCEOVER_HDFS", address("hdfs"))
        patch.setenv("ONCEOVER_WEBHDFS", f"http://{before.address}")
        with lane.driver() as driver, pytest.raises(TransientError, match="its outcome is unknown"):
            driver.turn()
    assert is_lost.is_set()
    assert lane.lines(), "what was appended is there"
    assert_counts_once(lane, range(10))


def test_broker_killed_in_mid_read_costs_no_record(lanes: Lanes, jobs: Jobs, stack: Stack) -> None:
    lane = lanes()
    port = int(address("kafka").rpartition(":")[2])
    ingest = hold_ingest(lane, jobs, Step.BEGUN)
    psutil.Process(stack.find_pid("kafka")).suspend()  # so that the read does not end before the broker does
    ingest.resume()
    wait_for(lambda: has_unread_request(port), 60, "a read to be under way")
    stack.kill_part("kafka")
    assert lane.lines() == []
    stack.start_part("kafka")
    go_on(lane, ingest, range(10))
