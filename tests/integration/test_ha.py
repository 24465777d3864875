"""A NameNode that is killed in the middle of an append, a repair and a compaction: the other takes over by itself, and
each record counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests.faults.ends import has_unread_request
from tests.integration.ha_cluster import NAME_SERVICE, Daemon, HaCluster, open_ha_cluster
from tests.integration.job_runs import (
    FIRST,
    LAST,
    PATIENCE,
    Jobs,
    end_ingest,
    end_well,
    land,
    land_spoiled,
    list_failed,
    make_lane,
    open_jobs,
    produce,
    require_counted,
    start_compaction,
    start_repair,
)
from tests.integration.lane import Lane, Lanes

from onceover.cli.doctor.hdfs import check_hdfs
from onceover.config.endpoints import locate_hdfs
from onceover.fault_points import CompactStep, RepairStep, Step
from onceover.raw.hdfs_store import HdfsStore
from onceover.raw.native_client import NativeClient
from onceover.raw.native_store import open_hdfs
from onceover_demo.supervised import SupervisedJob
from onceover_demo.warm import WarmJobs
from onceover_local.stack import Stack
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]


@pytest.fixture(scope="module")
def running(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HaCluster]:
    with open_ha_cluster(tmp_path_factory.mktemp("ha")) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: HaCluster) -> HaCluster:
    running.revive()
    return running


@pytest.fixture(scope="module")
def spark_session() -> None:
    """Return None: the jobs have a Spark of their own, which knows the name service."""


@pytest.fixture(scope="module")
def warm(running: HaCluster, stack: Stack) -> Iterator[WarmJobs]:
    jobs = WarmJobs(stack.local / "log" / "warm-ha.log")
    yield jobs
    jobs.close()


@pytest.fixture
def jobs(tmp_path: Path, warm: WarmJobs) -> Iterator[Jobs]:
    with open_jobs(tmp_path, warm) as start:
        yield start


@pytest.fixture(params=["hdfs", pytest.param("webhdfs", marks=pytest.mark.largest)])
def protocol(running: HaCluster, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The scheme of ONCEOVER_HDFS, by which raw is appended and read."""
    monkeypatch.setenv("ONCEOVER_HDFS", f"{request.param}://{NAME_SERVICE}")
    return str(request.param)


@pytest.mark.usefixtures("protocol")
def test_namenode_killed_in_mid_append_costs_no_record(lanes: Lanes, jobs: Jobs, cluster: HaCluster) -> None:
    lane = make_lane(lanes, jobs)
    produce(lane, range(FIRST, LAST))
    ingest = jobs("ingest.py", "--pipeline", lane.name, stop_after=Step.BEGUN)
    ingest.wait_until_held(PATIENCE)
    with fail_over(cluster) as is_waiting:
        ingest.resume()
        wait_for(is_waiting, PATIENCE, "an append to be under way")
    end_ingest(ingest)
    require_counted(lane, jobs)


@pytest.mark.largest
@pytest.mark.usefixtures("protocol")
def test_namenode_killed_in_mid_repair_publishes_once(lanes: Lanes, jobs: Jobs, cluster: HaCluster) -> None:
    lane, request_id = land_spoiled(lanes, jobs)
    with fail_over(cluster, *cluster.datanodes) as is_waiting:
        repair = start_repair(lane, jobs, request_id)
        wait_for(is_waiting, PATIENCE, "the repair to read raw")
    require_published(lane, jobs, cluster, repair, request_id)


@pytest.mark.largest
@pytest.mark.usefixtures("protocol")
@pytest.mark.parametrize("step", RepairStep)
def test_repair_whose_namenode_is_gone_goes_on(lanes: Lanes, jobs: Jobs, cluster: HaCluster, step: RepairStep) -> None:
    lane, request_id = land_spoiled(lanes, jobs)
    repair = start_repair(lane, jobs, request_id, stop_after=step)
    repair.wait_until_held(PATIENCE)
    kill_active(cluster)
    repair.resume()
    require_published(lane, jobs, cluster, repair, request_id)


@pytest.mark.largest
@pytest.mark.usefixtures("protocol")
@pytest.mark.parametrize("step", [None, *CompactStep])
def test_namenode_killed_in_mid_compaction_compacts_once(
    lanes: Lanes, jobs: Jobs, cluster: HaCluster, step: CompactStep | None
) -> None:
    lane = land(lanes, jobs)
    text = set(lane.raw())
    if step is None:
        with fail_over(cluster) as is_waiting:
            compaction = start_compaction(lane, jobs)
            wait_for(is_waiting, PATIENCE, "a file to be written")
    else:
        compaction = start_compaction(lane, jobs, stop_after=step)
        compaction.wait_until_held(PATIENCE)
        kill_active(cluster)
        compaction.resume()
    end_well(compaction, lambda: start_compaction(lane, jobs))
    cluster.wait_for_active()
    assert {name.split(".")[0] for name in set(lane.raw()) - text} == {"2026-03-01/1200", "2026-03-01/1205"}
    assert len(lane.raw()) == 2 * len(text), "one file a window beside its text"
    assert lane.hdfs().list(f"{lane.layout.raw_root}/{lane.name}").count("compacting") == 0
    require_counted(lane, jobs)


def test_doctor_names_the_active_namenode(cluster: HaCluster) -> None:
    active = cluster.wait_for_active()
    (other,) = cluster.namenodes.keys() - {active}
    serving, waiting = cluster.addresses[active], cluster.addresses[other]
    assert ("fine", f"{serving} is the active NameNode; {waiting} would take over") in check()
    assert ("fine", f"{serving} takes writes, 2 DataNodes") in check()
    cluster.namenodes[other].kill()
    lonely = f"{serving} is the active NameNode, and none would take over: {waiting} is away; start it"
    assert ("wrong", lonely) in check()


@pytest.mark.largest
def test_dead_datanode_is_left_out_beside_a_standby(cluster: HaCluster) -> None:
    """The standby gets the request last, and its answer says nothing of the DataNode."""
    active = cluster.addresses[cluster.wait_for_active()]
    store = HdfsStore(";".join((active, *({*cluster.addresses.values()} - {active}))))
    path = "/raw/dead/2026-03-01/1200.log"
    store.append(path, [b"first\n"])
    cluster.datanodes[0].kill()
    for _ in range(8):  # HDFS goes on naming either
        assert store.read(path) == b"first\n"


@pytest.mark.largest
def test_datanode_that_returns_takes_no_append_back(cluster: HaCluster) -> None:
    """It has an old copy of the file, which must not pass for the last one where a writer leaves the file open."""
    store, client, path = (
        open_hdfs(locate_hdfs()),
        NativeClient(f"hdfs://{NAME_SERVICE}"),
        "/raw/back/2026-03-01/1200.log",
    )
    for line in (b"first\n", b"second\n"):
        store.append(path, [line])
    cluster.kill_datanode()
    store.append(path, [b"third\n"])
    held = client.call(lambda hdfs: hdfs.append(path))
    cluster.revive()
    wait_for(lambda: client.call(lambda hdfs: hdfs.recover_lease(path)), PATIENCE, "the file to be closed")
    store.append(path, [b"fourth\n"])
    assert store.read(path) == b"first\nsecond\nthird\nfourth\n"
    del held


def check() -> list[tuple[str, str]]:
    return [(each.state, each.what) for each in check_hdfs([])]


@contextmanager
def fail_over(cluster: HaCluster, *held: Daemon) -> Iterator[Callable[[], bool]]:
    """Kill the active NameNode at the end of the block, in which these DataNodes hold up all that is read and written,
    or one of them what is written. Yield whether such work is under way."""
    active = cluster.wait_for_active()
    paused = [psutil.Process(each.process.find_pid()) for each in held or cluster.datanodes[:1]]
    opened = cluster.count_opened(active)
    for process in paused:
        process.suspend()
    try:
        yield lambda: cluster.count_opened(active) > opened or any(map(has_unread_request, cluster.list_ports()))
        kill_active(cluster)
    finally:
        for process in paused:
            process.resume()


def kill_active(cluster: HaCluster) -> None:
    """Kill the active NameNode; which one is active then, its controllers decide."""
    cluster.namenodes[cluster.wait_for_active()].kill()


def require_published(
    lane: Lane, jobs: Jobs, cluster: HaCluster, repair: SupervisedJob, request_id: int | None
) -> None:
    """Require that the repair ends well, has published its windows, and each record counts once."""
    end_well(repair, lambda: start_repair(lane, jobs, request_id))
    cluster.wait_for_active()
    assert list_failed(lane, request_id) == ()
    require_counted(lane, jobs)
