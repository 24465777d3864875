"""All servers and the driver gone at one moment, as when the power is cut."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import psutil
import pytest
from tests.faults.conftest import Jobs, hold
from tests.faults.ends import assert_counts_once
from tests.faults.page_cache import PageCache, has_compiler
from tests.integration.extras import produce
from tests.integration.lane import Lane, Lanes

from onceover.fault_points import Step
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
SERVERS = {"kafka", "hdfs", "postgres"}
"""The groups that hold what counts. Of Kafka and PostgreSQL the page cache stays: cut logs have tests of their own."""


def test_postgresql_writes_each_commit_to_disk(lanes: Lanes) -> None:
    durable = ["fsync", "full_page_writes", "synchronous_commit"]
    rows = lanes().query("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [durable])
    assert {row["name"]: row["setting"] for row in rows} == dict.fromkeys(durable, "on")


def test_all_servers_killed_at_once_in_mid_batch_cost_no_record(lanes: Lanes, jobs: Jobs, stack: Stack) -> None:
    lane = lanes()
    append_and_cut_power(lane, jobs, stack)
    parts = {part.name for part in stack.list_statuses() if part.group in SERVERS}
    assert set(stack.up(SERVERS)) == parts
    assert len(lane.lines()) == 20, "its append stays"
    assert_counts_once(lane, range(20))


@pytest.mark.largest
@pytest.mark.skipif(not has_compiler(), reason="there is no `cc` to watch what the servers sync")
def test_hdfs_whose_page_cache_is_dropped_keeps_what_landed(
    lanes: Lanes, jobs: Jobs, stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, hdfs = lanes(), (stack.local / "hdfs").resolve()
    for name in ("datanode1", "namenode"):
        stack.stop_part(name)
    cache = PageCache.watch([hdfs / "namenode" / "names", hdfs / "datanode1" / "data"], tmp_path)
    with monkeypatch.context() as environment:
        for key, value in cache.environment.items():
            environment.setenv(key, value)
        assert set(stack.up({"hdfs"})) == {"datanode1", "namenode"}
    append_and_cut_power(lane, jobs, stack)
    assert cache.count_synced() > 0, "the servers are watched"
    assert [file.name for file in cache.drop() if file.name.startswith("blk_")] == [], "each block was on the disk"
    stack.up(SERVERS)
    assert len(lane.lines()) == 20
    assert_counts_once(lane, range(20))


def append_and_cut_power(lane: Lane, jobs: Jobs, stack: Stack) -> None:
    """Land ten records, append ten more, then kill the driver and all servers at one moment."""
    produce(lane, range(10))
    lane.ingest()
    produce(lane, range(10, 20))
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.APPENDED)
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
