"""Running one of the entries to its end: its progress is seen, and a signal to us lets it end in its own way."""

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
_LAST_WORDS_SECONDS = 20.0
_SIGNALLED = 128  # and the signal's number: what a shell says of a process that was killed
_ENDED = "it was ended before it was done; what it had noted by then stays, run it again for the rest"
_PR_SET_PDEATHSIG = 1  # prctl(2): the signal that a process gets when its parent dies


def entry(name: str, *arguments: str) -> list[str]:
    """The command line of one of the entries that lie beside the library, `ingest.py` or `repair.py`.

    This interpreter runs them, and not spark-submit, which would keep SIGTERM from them.
    """
    file = Path(onceover.__file__).resolve().parents[1] / name
    if not file.is_file():
        raise ConfigurationError(f"there is no {file}; install the project from its folder, with `make setup`")
    return [sys.executable, str(file), *arguments]


def read_result(command: Sequence[str]) -> Any:
    """What the entry printed last, as JSON. Where it failed, we end as it did; ended by a signal, it says what that
    means."""
    with tempfile.TemporaryFile() as printed:
        try:
            ended = run_entry(command, stdout=printed.fileno())
        except BaseException:
            print_progress(_ENDED)
            raise
        if ended:
            if ended > _SIGNALLED:
                print_progress(_ENDED)
            raise typer.Exit(ended)
        printed.seek(0)
        return json.loads(printed.read().splitlines()[-1])


def run_entry(command: Sequence[str], stdout: int = _STDERR) -> int:
    """Its exit code. What it prints goes to stderr, for stdout is ours, or to another file descriptor. After Ctrl-C or
    SIGTERM it lets go of what it holds, and only then do we end. Should we be killed, it is told so as well, where
    there is Linux."""
    us, libc = os.getpid(), ctypes.CDLL(None) if sys.platform == "linux" else None

    def end_with_us() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != us:  # we were gone before that
                os._exit(1)

    # A process group of its own: a terminal's Ctrl-C would else reach it twice, and its JVM as well.
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stdout, process_group=0, preexec_fn=end_with_us
    ) as process:

        def end(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        before = signal.signal(signal.SIGTERM, end)
        try:
            ended = process.wait()
            return ended if ended >= 0 else _SIGNALLED - ended
        except BaseException:
            process.terminate()  # the entries unwind from it; SIGINT is ignored in what a shell put into the background
            try:
                process.wait(_LAST_WORDS_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
