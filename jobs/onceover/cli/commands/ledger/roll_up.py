"""`onceover ledger roll-up`: the ledger's old batches joined, so that it stays small for years."""

from __future__ import annotations

from dataclasses import asdict

from onceover.cli.arguments import DryRun, PipelineName
from onceover.cli.command import command
from onceover.cli.exit_codes import TRY_LATER
from onceover.cli.output import Answer, Occasionally
from onceover.context import open_pipeline
from onceover.explain.actions import describe_rollup
from onceover.retention.rollup import roll_up_batches


@command(
    "onceover ledger roll-up flights --dry-run",
    "onceover ledger roll-up flights",
    codes={TRY_LATER: "Kafka or PostgreSQL does not answer, or another process rolls up batches of this pipeline"},
)
def roll_up(pipeline: PipelineName, dry_run: DryRun = False) -> Answer:
    """Join the ledger's batches that Kafka no longer holds and whose windows are certified, an hour of them to one.

    The DAG expire_raw does so every day. A joined batch has one offset range of each Kafka partition and one landing in
    each window, as if one large batch had read and landed all of it: what has landed, certificates and repairs rest on
    the same records as before. Only which of the batches read an offset is forgotten. Batches that read offsets again,
    read a hole again, or were released or rebuilt stay as they are. The command may be killed and repeated.
    """
    with open_pipeline(pipeline, "roll-up") as context:
        result = roll_up_batches(context, dry_run=dry_run, say=Occasionally())
    return Answer({**asdict(result), "dry_run": dry_run}, [describe_rollup(result, dry_run=dry_run)])
