"""A batch on a cluster: the time in which it waits for executors is not its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from threading import Event
from unittest.mock import MagicMock

import pytest

from onceover.errors import HungSparkError, SparkLostError
from onceover.spark import hang_watch
from onceover.spark.hang_watch import end_hung_spark


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Return a process in place of a driver's JVM, whose batches may take a fifth of a second."""
    monkeypatch.setattr(hang_watch, "ON_CLUSTER_SECONDS", 0.2)
    monkeypatch.setattr(hang_watch, "_LOOK_ON_CLUSTER_SECONDS", 0.05)
    monkeypatch.setattr(hang_watch, "_LOOK_SECONDS", 0.05)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def make_session(jvm: subprocess.Popen[bytes]) -> MagicMock:
    session = MagicMock()
    session.sparkContext.master = "yarn"
    session._jvm.java.lang.ProcessHandle.current.return_value.pid.return_value = jvm.pid
    return session


def count_executors(session: MagicMock) -> MagicMock:
    """Return the call that counts the processes of an application: its driver and its executors."""
    count: MagicMock = session.sparkContext._jsc.sc.return_value.getExecutorMemoryStatus.return_value.size
    return count


def test_batch_that_waits_for_executors_is_not_hung(jvm: subprocess.Popen[bytes]) -> None:
    session, looked = make_session(jvm), Event()
    looks = iter(range(20))

    def count_the_driver_alone() -> int:
        if next(looks, None) is None:
            looked.set()
        return 1

    count_executors(session).side_effect = count_the_driver_alone
    with end_hung_spark(session, 1):
        assert looked.wait(30)
    assert jvm.poll() is None


@pytest.mark.parametrize("is_silent", [False, True])
def test_batch_on_executors_or_a_silent_jvm_is_ended(jvm: subprocess.Popen[bytes], is_silent: bool) -> None:
    session, over = make_session(jvm), Event()
    count_executors(session).side_effect = lambda: (is_silent and over.wait(30)) or 3

    def run() -> None:
        with end_hung_spark(session, 1):
            jvm.wait(30)
            raise SparkLostError("its JVM has died")

    with pytest.raises(HungSparkError):
        run()
    over.set()
