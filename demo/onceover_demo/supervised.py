"""A job as a supervisor runs it, and as a crash ends it: held still at a step, then SIGKILL to the whole group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import psutil

from onceover.config.endpoints import home
from onceover.errors import TransientError
from onceover.fault_points import STOP_AFTER, AnyStep


def kill_orphans(local: Path) -> None:
    """Kill ingest processes, held ones too, that an earlier demo in that folder left behind."""
    for process in psutil.process_iter(["cmdline"]):
        if not any(word.endswith("jobs/ingest.py") for word in process.info["cmdline"] or ()):
            continue
        try:
            if process.environ().get("ONCEOVER_LOCAL") == str(local):
                os.killpg(os.getpgid(process.pid), signal.SIGKILL)
        except (psutil.Error, ProcessLookupError):
            continue


class Running(Protocol):
    """A process that was started; subprocess.Popen is one."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


Launch = Callable[[str, Sequence[str], Mapping[str, str], Path], Running]


def launch_job(script: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Running:
    """Start `jobs/SCRIPT` with these arguments in a process group of its own, its output appended to a log file."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, str(home() / "jobs" / script), *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,
        )


class SupervisedJob:
    """One process of `jobs/SCRIPT` in a process group of its own, its output in a log file."""

    def __init__(self, script: str, arguments: Sequence[str], log: Path, launch: Launch = launch_job) -> None:
        self._name, self._arguments, self._log, self._launch = script, arguments, log, launch
        self._process: Running | None = None

    def start(
        self, stop_after: AnyStep | None = None, count: int = 1, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start the process; with `stop_after` it stops itself when it has reached that step `count` times."""
        environment = {STOP_AFTER: f"{stop_after}:{count}" if stop_after else "", **(environment or {})}
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._process = self._launch(self._name, self._arguments, environment, self._log)

    @property
    def pid(self) -> int:
        if self._process is None:
            raise TransientError(f"{self._name} was not started")
        return self._process.pid

    def wait_until_held(self, seconds: float, tick: Callable[[], None] = lambda: None) -> None:
        """Wait until the process has stopped itself at the step. Raises TransientError, with the last line of its log,
        if it ended instead."""
        deadline = time.monotonic() + seconds
        while psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
            if self._process is not None and self._process.poll() is not None:
                raise TransientError(f"{self._name} ended with {self._process.poll()}: {self.read_last_line()}")
            if time.monotonic() > deadline:
                raise TransientError(f"{self._name} did not reach its step in {seconds:.0f} s: {self.read_last_line()}")
            tick()
            time.sleep(0.1)

    def kill(self) -> None:
        """Send SIGKILL to the process group: driver, JVM and Python workers, as in a machine's failure."""
        os.killpg(self.pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait(30)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self, seconds: float = 60) -> int:
        """Send SIGTERM and return the exit code; the process finishes its batch first."""
        if self._process is None:
            raise TransientError(f"{self._name} was not started")
        os.kill(self.pid, signal.SIGTERM)
        return self._process.wait(seconds)

    def wait(self, seconds: float) -> int:
        """Wait until the process ends by itself, and return its exit code."""
        if self._process is None:
            raise TransientError(f"{self._name} was not started")
        return self._process.wait(seconds)

    def close(self) -> None:
        """Kill the process if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def read_last_line(self) -> str:
        lines = self.read_log().strip().splitlines()
        return lines[-1] if lines else "its log is empty"

    def read_log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""
