"""`onceover ledger rebuild`: a pipeline's part of a lost ledger written anew from raw."""

from __future__ import annotations

import subprocess
from json import loads

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.exit_codes import TRY_LATER, epilog
from onceover.cli.output import as_json, print_progress, say
from onceover.cli.spark_entry import entry
from onceover.config.pipelines import find
from onceover.explain.finding_text import pluralize


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover ledger rebuild flights",
            codes={TRY_LATER: "a part does not answer, or ingest runs; stop it first"},
        )
    )(rebuild)


def rebuild(pipeline: PipelineName, json: AsJson = False) -> None:
    """Write a pipeline's batches, landings, windows and frontiers anew from its raw alone, for a ledger that was lost.

    Reads all of raw with Spark. Refused where the ledger knows the pipeline's batches. What the aggregates count is not
    known afterwards: the next repair rebuilds and certifies every window. Certificates, reasons and decisions of before
    are lost with the ledger; offsets that raw does not hold are holes, which the next detection judges.
    """
    known = find(pipeline)
    print_progress("starting Spark, which reads all of raw")
    done = subprocess.run(entry("rebuild_ledger.py", "--pipeline", known.name), stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
    found = loads(done.stdout.decode().splitlines()[-1])
    if json:
        as_json(found)
        return
    windows, records, files = (pluralize(found[f"{noun}s"], noun) for noun in ("window", "record", "file"))
    say(f"{windows} with {records}, from {files}, stand in the ledger again")
    for hole in found["holes"]:
        say(f"raw does not hold {hole}")
    if found["beyond_reading"]:
        number = pluralize(found["beyond_reading"], "offset")
        say(
            f"{number} in no file, and in the log no more: control markers, compacted or expired records, or lost "
            "ones; nobody can tell any more"
        )
    say(f"Now start ingest, which closes windows, and then repair: `onceover ingest {known.name}`")
