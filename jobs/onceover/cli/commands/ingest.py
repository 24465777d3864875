"""`onceover ingest`: the ingest job in this process, so that signals reach it, or a supervisor of all pipelines."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Annotated

import typer

from onceover.cli.arguments import PipelineName, flag
from onceover.cli.command import command
from onceover.cli.spark_entry import make_command
from onceover.config.pipelines import find_file, names
from onceover.errors import UsageError
from onceover.ingest.supervisor import Supervisor


@command(
    "onceover ingest flights",
    "onceover ingest flights > flights.log 2>&1 &",
    "onceover ingest --all",
    codes={
        0: "a signal stopped it; its batch was finished and committed",
        1: "it cannot continue; the last line says why",
    },
)
def ingest(
    pipeline: PipelineName = "",
    every: Annotated[bool, flag("--all", "Run every pipeline, each in its own process.")] = False,
) -> None:
    """Land a pipeline's records in window files and update its near-real-time aggregates, until a signal stops it.

    On SIGTERM or Ctrl-C, ingest finishes and commits the batch in flight and exits 0. It may be killed at any time;
    wrong windows are then found and repaired. With --all, a process that ends is started again, a new TOML starts
    another process, and each line begins with its pipeline's name.
    """
    if bool(pipeline) == every:
        raise UsageError("name one pipeline, or give --all for every TOML under pipelines/")
    if every:
        _supervise()
        return
    find_file(pipeline)  # refuses an unknown name; the job reads the TOML
    command = make_command("ingest.py", "--pipeline", pipeline)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)


def _supervise() -> None:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Supervisor(names, lambda name: make_command("ingest.py", "--pipeline", name), _say, stop).run()


def _say(line: str) -> None:
    with suppress(OSError):  # a full disk of logs, a pipe without a reader: what a pipeline says must not stop it
        typer.echo(line)
