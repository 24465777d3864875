"""One process of the stack: started in its own session, identified by pid and birth, stopped with its session."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from onceover.errors import TransientError
from onceover_local.stack import launch
from onceover_local.stack.files import write_whole
from onceover_local.stack.launch import read_birth

_LOG_LIMIT: Final = 20_000_000
_LINES_OF_A_FAILURE: Final = 12
_LOCALE: Final = {"LC_ALL": "C.UTF-8"}
"""Java reads no path with a letter beyond ASCII unless the locale's encoding has it; containers often name none."""
_children: list[subprocess.Popen[bytes]] = []
"""Processes that this interpreter started, kept so that dead ones are reaped and not left as zombies."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line. `configuration` is the text of the files that the process reads, to detect an outdated one."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    configuration: str = ""

    def compute_fingerprint(self) -> str:
        whole = json.dumps([self.argv, sorted(self.environment.items()), self.configuration])
        return hashlib.sha256(whole.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """The record of a started process."""

    pid: int
    birth: str
    fingerprint: str


class ServerError(TransientError):
    """The failure of a server, or of the program that makes its folder; `log_end` holds the last lines of output."""

    def __init__(self, message: str, log_end: Sequence[str]) -> None:
        super().__init__(message)
        self.log_end = tuple(log_end)


class Process:
    """A named process with its record and log under one folder. Every method may be called again, in any state."""

    def __init__(self, name: str, local: Path, stop_signal: signal.Signals = signal.SIGTERM) -> None:
        self.name = name
        self.log = local / "log" / f"{name}.log"
        self._local = local
        self._record_file = local / "pid" / f"{name}.json"
        self._finished_file = local / "pid" / f"{name}.finished"
        self._stop_signal = stop_signal

    def read_record(self) -> ProcessRecord | None:
        """Return the record of the last start, whether the process runs or not."""
        try:
            return ProcessRecord(**json.loads(self._record_file.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):  # an unreadable record names no process to stop
            return None

    def find_pid(self) -> int | None:
        """Return the running process's pid, None if it does not run. Another process with the same pid is not it."""
        for child in _children:
            child.poll()
        record = self.read_record()
        return record.pid if record is not None and read_birth(record.pid) == record.birth else None

    def is_paused(self) -> bool:
        """Return whether a signal, SIGSTOP, has paused the process: it answers nothing, and does not end by itself."""
        pid = self.find_pid()
        with contextlib.suppress(psutil.NoSuchProcess):
            return pid is not None and psutil.Process(pid).status() == psutil.STATUS_STOPPED
        return False

    def runs_as(self, command: Command) -> bool:
        record = self.read_record()
        return (
            record is not None and self.find_pid() is not None and record.fingerprint == command.compute_fingerprint()
        )

    def is_finished(self) -> bool:
        """Return whether `set_finished` was called for the process that runs now."""
        return self._finished_file.exists() and self._finished_file.read_text() == repr(self.read_record())

    def set_finished(self) -> None:
        """Record that the steps after the start are done too, so that no later command repeats them."""
        write_whole(self._finished_file, repr(self.read_record()))

    def start(self, command: Command, lock: int | None = None) -> int:
        """Start the process and return its pid, without waiting until it is ready; stop leftovers of an earlier one.

        `lock` is a locked file's descriptor; it stays locked until the process is on record, even if we are killed.
        """
        self.stop(deadline_s=10)
        for folder in (self.log.parent, self._record_file.parent):
            folder.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        launcher = (sys.executable, "-I", "-S", launch.__file__, str(self._record_file), command.compute_fingerprint())
        held = launch.NO_LOCK if lock is None else str(lock)
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                [*launcher, held, *command.argv],
                env={**os.environ, **_LOCALE, "PATH": _make_path(), **command.environment},
                cwd=self._local,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=() if lock is None else (lock,),
            )
        _children.append(child)
        wait_for(lambda: self.find_pid() == child.pid or child.poll() is not None, 10, f"{self.name} to be launched")
        return child.pid

    def stop(self, deadline_s: float) -> bool:
        """Stop the process and its session, with SIGKILL after the deadline; return whether any process ran."""
        record = self.read_record()
        if record is None:
            return False
        did_run = self.find_pid() is not None or bool(self._find_left_behind(record))
        if (pid := self.find_pid()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, self._stop_signal)
                os.kill(pid, signal.SIGCONT)  # a paused process would never see the signal
            if not _becomes(lambda: self.find_pid() is None, deadline_s):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                wait_for(lambda: self.find_pid() is None, 10, f"{self.name} (pid {pid}) to be gone after SIGKILL")
        for polite in (True, False):
            left = self._find_left_behind(record)
            for each in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.terminate() if polite else each.kill()
            psutil.wait_procs(left, timeout=3 if polite else 10)
        self._finished_file.unlink(missing_ok=True)
        self._record_file.unlink(missing_ok=True)
        return did_run

    def make_error(self, how: str) -> ServerError:
        """Return the error for this failure, with the end of the log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return ServerError(f"{self.name} {how}: {_find_telling_line(text)} (log: {self.log})", _take_end(text))

    def _find_left_behind(self, record: ProcessRecord) -> list[psutil.Process]:
        """Return the processes in the session of a leader that has ended; until they end, its pid is not reused."""
        if read_birth(record.pid) is not None:
            return []
        processes = []
        for each in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
                if os.getsid(each.pid) == record.pid and each.status() != psutil.STATUS_ZOMBIE:
                    processes.append(each)
        return processes


def run_once(command: Sequence[str], what: str, log: Path) -> None:
    """Run a command to its end, with its output in the log. Raises ServerError with the last lines of output."""
    done = subprocess.run(
        command, cwd="/", env={**os.environ, **_LOCALE}, capture_output=True, text=True, errors="replace", check=False
    )
    printed = done.stdout + done.stderr
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as opened:
        opened.write(printed)
    if done.returncode != 0:
        message = f"{what} failed ({done.returncode}): {_find_telling_line(printed)} (log: {log})"
        raise ServerError(message, _take_end(printed))


def _take_end(text: str) -> list[str]:
    return [line[:300] for line in text.splitlines() if line.strip()][-_LINES_OF_A_FAILURE:]


def _find_telling_line(text: str) -> str:
    """Return the last line that names an error; without one, the last line."""
    lines = [line.strip() for line in text.splitlines()[-200:] if line.strip()]
    telling = [line for line in lines if any(word in line for word in ("ERROR", "FATAL", "Error", "Exception"))]
    return (telling or lines or ["it wrote nothing"])[-1][:300]


def _make_path() -> str:
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def wait_for(done: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Wait until `done` returns true. Raises TransientError at the deadline."""
    if not _becomes(done, deadline_s):
        raise TransientError(f"timed out after {deadline_s:.0f} s waiting for {what}")


def _becomes(done: Callable[[], bool], deadline_s: float) -> bool:
    end = time.monotonic() + deadline_s
    while not done():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True
