"""The run of a Spark job as a child process: its progress is shown, and a signal to the CLI ends it cleanly."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import typer

import onceover
from onceover.cli.output import print_progress
from onceover.errors import ConfigurationError

_STDERR = 2
_GRACE_SECONDS = 20.0
_SIGNALLED = 128  # plus the signal's number: a shell's exit code for a process that was killed
_ENDED = "interrupted before the end; what is done so far is kept, run the command again for the rest"
_PR_SET_PDEATHSIG = 1  # prctl(2): the signal that a process gets when its parent dies


def make_command(name: str, *arguments: str) -> list[str]:
    """Return the command line of one of the jobs beside the library, like `ingest.py` or `repair.py`.

    The job runs under this interpreter: spark-submit would not pass SIGTERM on. Raises ConfigurationError if the file
    is missing.
    """
    file = Path(onceover.__file__).resolve().parents[1] / name
    if not file.is_file():
        raise ConfigurationError(f"{file} does not exist; install the project from its folder, with `make setup`")
    return [sys.executable, str(file), *arguments]


def run_job(name: str, *arguments: str, doing: str = "") -> Any:
    """Say that Spark starts, run a job as `make_command` names it, and return its result as `read_result` does."""
    command = make_command(name, *arguments)
    print_progress(f"starting Spark{doing}")
    return read_result(command)


def read_result(command: Sequence[str]) -> Any:
    """Run the job and return the last line that it printed, as JSON. Raises typer.Exit with the exit code of a job
    that failed; prints what to do if a signal ended the job."""
    with tempfile.TemporaryFile() as printed:
        try:
            exit_code = run_entry(command, stdout=printed.fileno())
        except BaseException:
            print_progress(_ENDED)
            raise
        if exit_code:
            if exit_code > _SIGNALLED:
                print_progress(_ENDED)
            raise typer.Exit(exit_code)
        printed.seek(0)
        return json.loads(printed.read().splitlines()[-1])


def run_entry(command: Sequence[str], stdout: int = _STDERR) -> int:
    """Run the job and return its exit code. The job's output goes to stderr, as stdout is for results, or to another
    file descriptor. After Ctrl-C or SIGTERM, wait until the job has released its locks and claims. On Linux, the job
    gets a SIGTERM even if this process is killed."""
    parent, libc = os.getpid(), ctypes.CDLL(None) if sys.platform == "linux" else None

    def end_with_parent() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:  # the parent died before prctl
                os._exit(1)

    # In the same process group, a terminal's Ctrl-C would reach the job twice, and its JVM as well.
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stdout, process_group=0, preexec_fn=end_with_parent
    ) as process:

        def end(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        before = signal.signal(signal.SIGTERM, end)
        try:
            exit_code = process.wait()
            return exit_code if exit_code >= 0 else _SIGNALLED - exit_code
        except BaseException:
            process.terminate()  # a job unwinds on SIGTERM; a background process of a shell ignores SIGINT
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
