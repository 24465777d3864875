"""`onceover ledger roll-up`: the ledger's old batches joined, so that it stays small for years."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.exit_codes import TRY_LATER, format_epilog
from onceover.cli.output import Occasionally, print_json, say
from onceover.context import open_pipeline
from onceover.retention.rollup import RollupResult, roll_up_batches

DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Only count what would be joined; write nothing.")]


def add_to(app: typer.Typer) -> None:
    app.command(
        "roll-up",
        epilog=format_epilog(
            "onceover ledger roll-up flights --dry-run",
            "onceover ledger roll-up flights",
            codes={
                TRY_LATER: "Kafka or PostgreSQL does not answer, or another process rolls up batches of this pipeline"
            },
        ),
    )(roll_up)


def roll_up(pipeline: PipelineName, dry_run: DryRun = False, json: AsJson = False) -> None:
    """Join the ledger's batches that Kafka no longer holds and whose windows are certified, an hour of them to one.

    The DAG expire_raw does so every day. A joined batch has one offset range of each Kafka partition and one landing in
    each window, as if one large batch had read and landed all of it: what has landed, certificates and repairs rest on
    the same records as before. Only which of the batches read an offset is forgotten. Batches that read offsets again,
    read a hole again, or were released or rebuilt stay as they are. The command may be killed and repeated.
    """
    with open_pipeline(pipeline, "roll-up") as context:
        result = roll_up_batches(context, dry_run=dry_run, say=Occasionally())
    if json:
        print_json({**result.as_dict(), "dry_run": dry_run})
    else:
        say(describe_rollup(result, dry_run=dry_run))


def describe_rollup(result: RollupResult, *, dry_run: bool) -> str:
    """Describe what was done in a sentence."""
    if not result.batches:
        return "no batch can be joined: Kafka holds their offsets, or their windows are not certified yet"
    joined = "would be joined" if dry_run else "joined"
    left = f"; windows of {result.left:,} more changed meanwhile" if result.left else ""
    return (
        f"{result.batches:,} batches {joined} to {result.rollups + result.alone:,}, {result.alone:,} of which "
        f"have none beside them{left}"
    )
