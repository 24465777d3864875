"""`onceover ingest`: becomes the ingest job, so that what a supervisor sends reaches the job itself."""

from __future__ import annotations

import os
import sys

import typer

from onceover.cli.arguments import PipelineName, entry
from onceover.cli.exit_codes import epilog


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover ingest flights",
            "onceover ingest flights > flights.log 2>&1 &",
            codes={
                0: "it was told to stop, finished its batch and committed",
                1: "it cannot go on; the last line says",
            },
        )
    )(ingest)


def ingest(pipeline: PipelineName) -> None:
    """Land a pipeline's records in window files and keep its near-real-time aggregates, until told to stop.

    SIGTERM or Ctrl-C: it finishes the batch under way, commits it and exits 0. It may be killed at any time; whatever
    that leaves wrong is found and repaired.
    """
    from onceover.config.pipelines import find

    command = entry("ingest.py", "--pipeline", find(pipeline).name)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)
