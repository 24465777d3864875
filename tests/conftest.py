"""The tiers' order, and the embedded stack that all tests of one session share: real parts, a folder of its own."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from onceover import endpoints
from onceover.stack import Stack, surroundings
from onceover_airflow.rest import AirflowRest

ROOT = Path(__file__).parents[1]
# A shell starts what it runs in the background with SIGINT ignored, and every child of ours would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Ten records need no optimizing compiler: with its first tier alone a cold Spark costs half of the processors' time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
# How long one example takes says something of the machine, which may stand still for a second, and nothing of the code.
settings.register_profile("onceover", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("onceover")
logging.getLogger("py4j").setLevel(logging.WARNING)  # it says goodbye when the log it was given is closed already
TIERS = ("spark", "stack", "airflow", "faults")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fastest tier first, whatever the files are called; a test belongs to the slowest tier it is marked with."""
    items.sort(
        key=lambda item: max((TIERS.index(tier) + 1 for tier in TIERS if item.get_closest_marker(tier)), default=0)
    )


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """Kafka, HDFS and PostgreSQL, empty at the session's start; ONCEOVER_LOCAL names their folder, so that
    `onceover.endpoints` and every child process find them. Its own folder: `make up`'s stack is left alone."""
    with folder_of_this_session() as local, pytest.MonkeyPatch.context() as environment:
        surroundings.leave()
        environment.setenv("ONCEOVER_LOCAL", str(local))
        environment.setenv("ONCEOVER_HOME", str(ROOT))
        # TOMLs that tests write are seen by every process, Airflow's too, and are no file of the checkout.
        shutil.copytree(ROOT / "pipelines", local / "pipelines")
        environment.setenv("ONCEOVER_PIPELINES", str(local / "pipelines"))
        found = Stack(local)
        try:
            found.up({"kafka", "hdfs", "postgres"})
            yield found
        finally:
            found.down()


@pytest.fixture(scope="session")
def airflow(stack: Stack) -> Iterator[AirflowRest]:
    """Airflow's four processes on that stack, and its REST API as admin. `repair_failed_windows` is paused, so that
    its schedule starts nothing in between; a test that wants it to run lifts that."""
    stack.up({"airflow"})
    password = json.loads((stack.local / "airflow" / "passwords.json").read_text())["admin"]
    rest = AirflowRest(endpoints.address("airflow"), "admin", password)
    try:
        for dag in sorted((ROOT / "dags").glob("*.py")):
            rest.wait_for_dag(dag.stem, 180)
        rest.pause("repair_failed_windows", True)
        yield rest
    finally:
        rest.close()


@contextmanager
def folder_of_this_session() -> Iterator[Path]:
    """A folder under `.local/test` that this session holds a lock on. What sessions that were killed left is ended."""
    root = ROOT / ".local" / "test"
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("a") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # else a folder could be cleared away before its session has locked it
        _clear(root)
        folder = Path(tempfile.mkdtemp(dir=root, prefix=""))
        lock = (folder / "session.lock").open("a")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        yield folder
    if "ONCEOVER_KEEP" not in os.environ:  # kept, its logs can be read; the next session clears it away
        shutil.rmtree(folder)


def _clear(root: Path) -> None:
    for other in root.iterdir():
        if not other.is_dir():
            continue
        with (other / "session.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # its session is running
            Stack(other).down()
            shutil.rmtree(other)
