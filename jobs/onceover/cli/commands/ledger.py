"""`onceover ledger`: its schema, and a pipeline's part of it written anew from raw."""

from __future__ import annotations

import subprocess
from json import loads

import typer

from onceover.cli.arguments import AsJson, PipelineName, entry
from onceover.cli.exit_codes import TRY_LATER, epilog
from onceover.cli.output import as_json, progress, say
from onceover.explain.finding_text import counted

app = typer.Typer(name="ledger", no_args_is_help=True, help="Look after the ledger.")


@app.command(epilog=epilog("onceover ledger migrate"))
def migrate() -> None:
    """Bring the ledger's schema to this version of the code. Twice, or by two at once, is the same as once."""
    from onceover.config.endpoints import address
    from onceover.ledger import database

    database.migrate(address("postgres"))
    say(f"the ledger is at version {database.HEAD}")


@app.command(
    epilog=epilog(
        "onceover ledger rebuild flights",
        codes={TRY_LATER: "a part does not answer, or ingest runs; stop it first"},
    )
)
def rebuild(pipeline: PipelineName, json: AsJson = False) -> None:
    """Write a pipeline's batches, landings, windows and frontiers anew from its raw alone, for a ledger that was lost.

    Reads all of raw with Spark. Refused where the ledger knows the pipeline's batches. What the aggregates count is not
    known afterwards: the next repair rebuilds and certifies every window. Certificates, reasons and decisions of before
    are lost with the ledger; offsets that raw does not hold are holes, which the next detection judges.
    """
    from onceover.config.pipelines import find

    known = find(pipeline)
    progress("starting Spark, which reads all of raw")
    done = subprocess.run(entry("rebuild_ledger.py", "--pipeline", known.name), stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
    found = loads(done.stdout.decode().splitlines()[-1])
    if json:
        as_json(found)
        return
    windows, records, files = (counted(found[f"{noun}s"], noun) for noun in ("window", "record", "file"))
    say(f"{windows} with {records}, from {files}, stand in the ledger again")
    for hole in found["holes"]:
        say(f"raw does not hold {hole}")
    if found["beyond_reading"]:
        number = counted(found["beyond_reading"], "offset")
        say(
            f"{number} in no file, and in the log no more: control markers, compacted or expired records, or lost "
            "ones; nobody can tell any more"
        )
    say(f"Now start ingest, which closes windows, and then repair: `onceover ingest {known.name}`")
