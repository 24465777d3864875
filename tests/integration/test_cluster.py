"""The same jobs on Spark standalone and three DataNodes, a worker and a DataNode being killed in mid-batch."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.cluster_jobs import PATIENCE, end_well, ingest_all, start_repair, wait_until
from tests.integration.compaction import spoil_rows
from tests.integration.events import count_events, event, moment
from tests.integration.job_fixtures import jobs, spark_session
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, minutes
from tests.listening import LOOPBACKS, list_heard
from tests.own_stack import ROOT, embedded
from tests.spark_door import RPC_FAILURE, ask

from onceover.config.endpoints import address
from onceover.fault_points import Step
from onceover.repair import confirmation
from onceover_demo.supervised import SupervisedJob
from onceover_local.stack import Stack
from onceover_local.stack.part import get_json
from onceover_local.stack.ports import LOOPBACK
from onceover_local.stack.process import wait_for

__all__ = ["jobs", "spark_session"]
pytestmark = [pytest.mark.stack, pytest.mark.rare]
WINDOWS = 6


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("PYSPARK_SUBMIT_ARGS", raising=False)  # another module's session, without a cluster
        with embedded("spark", cluster=True) as found:
            yield found


@pytest.fixture
def as_a_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a switch to an executors' Python without this project's packages, which then go with the application."""

    def begin() -> None:
        archive = shutil.make_archive(str(tmp_path / "onceover"), "zip", ROOT / "jobs", "onceover")
        python = tmp_path / "python"
        packages = sysconfig.get_path("purelib")
        # Without `site` no .pth file is read, and one of those is all that an editable installation is.
        python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n')
        python.chmod(0o755)
        monkeypatch.setenv("PYSPARK_PYTHON", str(python))
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--master {address('spark')} --py-files {archive} pyspark-shell")
        monkeypatch.setenv("SPARK_LOCAL_IP", LOOPBACK)

    return begin


def test_cluster_refuses_a_caller_without_its_secret(stack: Stack) -> None:
    doors = json.loads((stack.local / "ports.json").read_text())
    for part in ("spark-master", "spark-worker1", "spark-worker2"):
        kind, answer = ask(LOOPBACK, doors[part], b"\0" * 16)
        assert kind == RPC_FAILURE, part
        assert "SASL" in answer, part
    secret = (stack.local / "secrets" / "spark").read_text()
    lines = [each.info["cmdline"] or () for each in psutil.process_iter(["cmdline"])]  # of one that has ended, none
    assert not [line for line in lines if any(secret in part for part in line)]
    defaults = stack.local / "spark" / "conf" / "spark-defaults.conf"
    assert secret in defaults.read_text()
    assert defaults.stat().st_mode & 0o077 == 0


def test_cluster_ingest_and_repair_outlive_worker_and_datanode(
    lanes: Lanes,
    jobs: Callable[..., SupervisedJob],
    stack: Stack,
    as_a_zip: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = lanes(partitions=2)
    lane.hdfs().makedirs(lane.layout.raw_root)
    lane.hdfs().set_owner(lane.layout.raw_root, "ingest", "onceover")
    monkeypatch.setenv("HADOOP_USER_NAME", "ingest")
    first, second = ([event(n % (5 * WINDOWS), "ab"[n % 2], n) for n in range(at, at + 600)] for at in (0, 600))
    lane.produce(first[:300], 0)
    lane.produce(first[300:], 1)

    ingest = jobs("ingest.py", "--pipeline", lane.name)
    ingest.start(Step.INCREMENTED, count=2)
    wait_until(ingest, lambda: count_batches(lane, "committed_at") == 1)
    assert set(lane.ids()) == {(p, offset) for p in (0, 1) for offset in range(300)}
    assert count_cores(stack) == {"spark-worker1": 1, "spark-worker2": 1}
    lane.produce(second)
    wait_until(ingest, lambda: count_batches(lane, "begun_at") == 2)
    stack.kill_part("spark-worker1")
    stack.kill_part("datanode2")
    ingest.wait_until_held(PATIENCE)
    assert count_cores(stack) == {"spark-worker2": 2}
    ingest.kill()  # what it has added to the aggregates, the next one adds again

    as_a_zip()
    ingest_all(jobs, lane, "nothing to read | lag 0:0 1:0 | idle, every window closed")
    assert set(lane.ids()) == lane.log().keys()
    files = [status for _, _, each in lane.hdfs().walk(lane.layout.raw_root, status=True) for _, status in each]
    assert {status["owner"] for status in files} == {"ingest"}, "not the user of Spark's workers"

    right = count_events(first + second)
    assert lane.aggregates() != right
    detection = lane.detect()
    assert len(detection.failed) == WINDOWS
    end_well(start_repair(jobs, lane, detection.request_id))
    with lane.open() as context:
        done = confirmation.confirm(context, detection.request_id or 0)
    assert len(done.confirmed) == WINDOWS
    assert done.duplicates > 0
    assert lane.aggregates() == right
    assert lane.detect().judged == 0
    ran = [app["name"] for app in read_master(stack)["completedapps"]]
    assert sorted(ran) == [f"onceover ingest {lane.name}"] * 2 + [f"onceover repair {lane.name}"]


@pytest.mark.largest
def test_repair_outlives_a_worker_that_dies_while_it_folds(
    lanes: Lanes, jobs: Callable[..., SupervisedJob], stack: Stack
) -> None:
    bring_both_workers(stack)
    lane, values = lanes(), [event(n % (5 * WINDOWS), "ab"[n % 2], n) for n in range(600)]
    lane.produce(values)
    ingest_all(jobs, lane)
    right = count_events(values)
    spoil_rows(lane)
    request_id = lane.detect(minutes(0, 60), force=True).request_id
    repair = start_repair(jobs, lane, request_id)
    wait_until(repair, lambda: f"reading {WINDOWS} window files" in repair.read_log())
    datanodes = [psutil.Process(stack.find_pid(f"datanode{n}")) for n in (1, 2, 3)]
    for each in datanodes:  # so that no task ends before the worker does
        each.suspend()
    try:
        worker = psutil.Process(stack.find_pid("spark-worker1"))
        wait_until(repair, lambda: len(list_python_workers(worker)) > 0)
        lost = worker.children(recursive=True)
        assert lane.aggregates() != right
        assert psutil.Process(repair.pid).is_running()
        stack.kill_part("spark-worker1")
        for process in lost:
            with suppress(psutil.NoSuchProcess):
                process.kill()
    finally:
        for each in datanodes:
            each.resume()
    end_well(repair)
    with lane.open() as context:
        assert len(confirmation.confirm(context, request_id or 0).confirmed) == WINDOWS
    assert (lane.aggregates(), count_certified(lane), lane.detect().judged) == (right, WINDOWS, 0)


def list_python_workers(worker: psutil.Process) -> list[psutil.Process]:
    """Return the processes in which the worker's executors run tasks in Python."""
    found = []
    for process in worker.children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            parent = process.parent()
            if parent is not None and "pyspark.daemon" in process.cmdline() and "pyspark.daemon" in parent.cmdline():
                found.append(process)
    return found


@pytest.mark.largest
def test_executors_lost_after_appends_append_again(
    lanes: Lanes, jobs: Callable[..., SupervisedJob], stack: Stack
) -> None:
    """Both executors die among the appends of one batch; their tasks are done again, and each record counts once."""
    bring_both_workers(stack)
    lane, records, windows = lanes(partitions=2), 400, 100
    values = [event(5 * (n % windows), amount=n) for n in range(records)]
    lane.produce(values[: records // 2], 0)
    lane.produce(values[records // 2 :], 1)
    ingest = jobs("ingest.py", "--pipeline", lane.name)
    ingest.start()
    first, end = (moment(5 * at) for at in (0, windows))
    wait_until(ingest, lambda: len(lane.files().list_window_files(first, end)) > windows // 10)
    for worker in ("spark-worker1", "spark-worker2"):
        stack.kill_part(worker)
    appended = len(lane.lines())
    assert 0 < appended < records
    for worker in ("spark-worker1", "spark-worker2"):
        stack.start_part(worker)
    wait_until(ingest, lambda: "idle, every window closed" in ingest.read_log())
    assert ingest.stop() == 0
    assert len(lane.lines()) == records + appended, "what they had appended is there twice"

    end_well(start_repair(jobs, lane, lane.detect().request_id))
    sums = {(5.0 * at, "a"): [n for n in range(records) if n % windows == at] for at in range(windows)}
    assert lane.aggregates() == {key: (len(each), sum(each), max(each)) for key, each in sums.items()}
    assert count_certified(lane) == windows


def test_cluster_listens_on_loopback_only(stack: Stack) -> None:
    up = [each.pid for each in stack.list_statuses() if each.group in ("spark", "hdfs") and each.pid is not None]
    heard = list_heard(up)
    assert len(heard) >= 2 * len(up)
    assert set(heard) <= LOOPBACKS


def bring_both_workers(stack: Stack) -> None:
    """Start what another test has killed."""
    for part in ("spark-worker1", "datanode2"):
        stack.start_part(part)
    wait_for(lambda: len(count_cores(stack)) == 2, PATIENCE, "both workers")


def count_batches(lane: Lane, step: str) -> int:
    """Count the batches that have reached the step."""
    (row,) = lane.query(f"SELECT count({step}) AS found FROM onceover.batch WHERE pipeline = %s", [lane.name])
    return int(row["found"])


def read_master(stack: Stack) -> dict[str, Any]:
    (address,) = (each.address for each in stack.list_statuses() if each.name == "spark-master")
    return get_json(f"{address}/json/")


def count_cores(stack: Stack) -> dict[str, int]:
    """Return the cores in use by live worker."""
    names = {each.address: each.name for each in stack.list_statuses()}
    return {names[w["webuiaddress"]]: w["coresused"] for w in read_master(stack)["workers"] if w["state"] == "ALIVE"}
