"""`onceover ledger rebuild`: the recovery of a pipeline's part of a lost ledger from raw."""

from __future__ import annotations

import subprocess
from json import loads

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.exit_codes import TRY_LATER, format_epilog
from onceover.cli.output import print_json, print_progress, say
from onceover.cli.spark_entry import make_command
from onceover.context import open_pipeline
from onceover.model.wording import pluralize

_MOST_SHOWN = 20


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover ledger rebuild flights",
            codes={TRY_LATER: "a service does not answer, or ingest runs; stop ingest first"},
        )
    )(rebuild)


def rebuild(pipeline: PipelineName, json: AsJson = False) -> None:
    """Rebuild a pipeline's batches, landings, windows and frontiers in a lost ledger from its raw files alone.

    Reads all of raw with Spark, compacted files too. Refuses a pipeline whose batches the ledger has. Afterwards it is
    unknown which records the aggregates count: the next repair rebuilds and certifies every window. Windows with
    aggregates but no raw file count as expired. Earlier certificates and reasons are lost with the ledger; offsets
    that raw does not hold are holes, which the next detection judges.
    """
    with open_pipeline(pipeline, "rebuild") as context:
        context.require_addresses("postgres", "kafka")
        name = context.name
    print_progress("starting Spark, which reads all of raw")
    done = subprocess.run(make_command("rebuild_ledger.py", "--pipeline", name), stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
    result = loads(done.stdout.decode().splitlines()[-1])
    if json:
        print_json(result)
        return
    windows, records, files = (pluralize(result[f"{noun}s"], noun) for noun in ("window", "record", "file"))
    say(f"rebuilt {windows} with {records} in the ledger, from {files}")
    if result["expired"]:
        say(f"{pluralize(result['expired'], 'window')} without their raw: expired, the aggregates stay as they are")
    if result["foreign"]:
        say(
            f"{pluralize(result['foreign'], 'record')} of a log that this pipeline never read, by the root's marker: "
            "left out"
        )
    for hole in result["holes"][:_MOST_SHOWN]:
        say(f"raw does not hold {hole}")
    if len(result["holes"]) > _MOST_SHOWN:
        say(f"and {len(result['holes']) - _MOST_SHOWN} more ranges: `onceover holes {name}`")
    if result["in_neither"]:
        number = pluralize(result["in_neither"], "offset")
        say(
            f"{number} of these are no longer in Kafka either: control markers, or compacted, expired or lost records. "
            f"Windows close once they are accepted as lost: `onceover accept-loss {name} RANGE --from TIME --to TIME "
            '--reason "..."`, where RANGE may span many of them'
        )
    say(f"Now start ingest, which closes windows, then repair: `onceover ingest {name}`")
