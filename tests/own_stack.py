"""Embedded stacks for tests: each in a folder of its own, with nothing left behind after any kill."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onceover_local.stack import Stack, surroundings

ROOT = Path(__file__).parents[1]


@contextmanager
def embedded(*more: str, cluster: bool = False) -> Iterator[Stack]:
    """Kafka, HDFS, PostgreSQL and what else is named, empty; ONCEOVER_LOCAL names their folder, so that
    `onceover.config.endpoints` and every child process find them. `make up`'s stack is left alone."""
    with folder_of_this_session() as local, pytest.MonkeyPatch.context() as environment:
        surroundings.leave()
        environment.setenv("ONCEOVER_LOCAL", str(local))
        environment.setenv("ONCEOVER_HOME", str(ROOT))
        # TOMLs that tests write are seen by every process, Airflow's too, and are no file of the checkout. Of the
        # checkout's own only the shipped one is here: a test must not depend on a user's pipelines.
        (local / "pipelines").mkdir()
        shutil.copy(ROOT / "pipelines" / "flights.toml", local / "pipelines")
        environment.setenv("ONCEOVER_PIPELINES", str(local / "pipelines"))
        found = Stack(local, cluster=cluster)
        try:
            found.up({"kafka", "hdfs", "postgres", *more})
            yield found
        finally:
            found.down()


@contextmanager
def folder_of_this_session() -> Iterator[Path]:
    """A folder under `.local/test` that this session holds a lock on. Processes of killed sessions are ended."""
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
        Stack(folder).remove()


def _clear(root: Path) -> None:
    for other in root.iterdir():
        if not other.is_dir():
            continue
        with (other / "session.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # its session is running
            Stack(other).remove()
