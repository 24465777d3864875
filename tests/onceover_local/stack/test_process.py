from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from onceover_local.stack.launch import read_birth
from onceover_local.stack.process import Command, Process, wait_for

SLEEPS = Command(("sleep", "600"))


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    found = Process("sleeper", tmp_path)
    yield found
    found.stop(deadline_s=1)


def test_started_process_is_known_and_stopped_by_a_later_command(process: Process, tmp_path: Path) -> None:
    pid = process.start(SLEEPS)
    later = Process("sleeper", tmp_path)
    assert later.find_pid() == pid
    assert later.runs_as(SLEEPS)
    assert later.stop(deadline_s=5)
    assert not psutil.pid_exists(pid)
    assert later.find_pid() is None
    assert not later.stop(deadline_s=5)


def test_lock_is_held_until_the_process_is_recorded(process: Process, tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process.start(Command(("sh", "-c", "ls -l /proc/$$/fd; sleep 600")), lock.fileno())
    with (tmp_path / "lock").open("w") as later:
        fcntl.flock(later, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert process.find_pid() is not None
    wait_for(lambda: "total" in process.log.read_text(), 10, "its list of open files")
    assert "/lock" not in process.log.read_text()


def test_foreign_process_with_the_pid_is_never_taken_or_stopped(process: Process, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        record = {"pid": stranger.pid, "birth": "another boot/1", "fingerprint": SLEEPS.compute_fingerprint()}
        (tmp_path / "pid").mkdir()
        (tmp_path / "pid" / "sleeper.json").write_text(json.dumps(record))
        assert process.find_pid() is None
        assert not process.stop(deadline_s=1)
        assert stranger.poll() is None
        stranger.kill()


def test_changed_command_or_configuration_is_noticed(process: Process) -> None:
    process.start(SLEEPS)
    assert not process.runs_as(Command(("sleep", "601")))
    assert not process.runs_as(Command(SLEEPS.argv, configuration="port=1"))
    assert not process.runs_as(Command(SLEEPS.argv, {"A": "1"}))


def test_process_that_ignores_the_signal_is_killed_in_time(process: Process) -> None:
    pid = process.start(Command(("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")))
    wait_for(lambda: "ready" in process.log.read_text(), 10, "the signal to be ignored")
    assert process.stop(deadline_s=0.3)
    assert read_birth(pid) is None


def test_paused_process_is_stopped_too(process: Process) -> None:
    pid = process.start(SLEEPS)
    os.kill(pid, signal.SIGSTOP)
    assert process.stop(deadline_s=5)
    assert read_birth(pid) is None


def test_children_that_outlive_a_killed_process_are_ended(process: Process) -> None:
    pid = process.start(Command(("sh", "-c", "sleep 600 & sleep 600 & wait")))
    wait_for(lambda: len(psutil.Process(pid).children()) == 2, 10, "the children")
    children = [child.pid for child in psutil.Process(pid).children()]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: process.find_pid() is None, 10, "the leader's end")
    assert process.stop(deadline_s=1)
    assert [read_birth(child) for child in children] == [None, None]


def test_dead_process_is_not_running_even_unreaped(process: Process) -> None:
    pid = process.start(Command(("true",)))
    wait_for(lambda: process.find_pid() is None, 10, "its end")
    assert process.read_record() is not None
    assert read_birth(pid) is None


def test_process_whose_first_thread_has_ended_still_runs(process: Process) -> None:
    ends_its_first_thread = (
        "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); "
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    pid = process.start(Command((sys.executable, "-c", ends_its_first_thread)))
    wait_for(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 10, "its first thread to end")
    assert process.find_pid() == pid
    assert process.stop(deadline_s=5)
    assert read_birth(pid) is None


def test_last_line_with_an_error_is_the_message(process: Process) -> None:
    process.start(Command(("printf", "starting\njava.lang.IllegalStateException: no\nbye\n")))
    wait_for(lambda: process.find_pid() is None, 10, "its end")
    failed = process.make_error("ended")
    assert str(failed).startswith(f"{process.name} ended: java.lang.IllegalStateException: no (log: ")
    assert failed.log_end == ("starting", "java.lang.IllegalStateException: no", "bye")
