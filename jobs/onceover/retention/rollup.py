"""Rollup of the ledger's old batches, for Airflow and the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onceover.context import PipelineContext
from onceover.kafka.log_bounds import read_held
from onceover.ledger import rollups
from onceover.model.rollup import plan_rollups

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RollupResult:
    """The `batches` that could be rolled up, and the number of those that they became: `rollups`, and those `alone`
    that have none beside them. `left` count batches whose windows changed meanwhile."""

    pipeline: str
    batches: int
    rollups: int
    alone: int
    left: int


def roll_up_batches(context: PipelineContext, *, dry_run: bool = False, say: Say = lambda text: None) -> RollupResult:
    """Roll up the pipeline's batches whose offsets Kafka no longer holds. If killed, what was rolled up stays so.

    Raises BusyError while another process rolls up batches of the pipeline, UnreachableError if Kafka does not answer.
    """
    context.read_registration()
    with context.open_own_topic() as topic:
        starts = {log.source: log.start for log in read_held(topic)}
    if not dry_run:
        rollups.hold_rollups(context.ledger, context.name)
    batches = joined = alone = left = 0
    for run in plan_rollups(rollups.list_old_batches(context.ledger, context.name, starts)):
        if not (dry_run or rollups.roll_up(context.ledger, context.name, run)):
            left += len(run)
            continue
        batches += len(run)
        joined, alone = (joined + 1, alone) if len(run) > 1 else (joined, alone + 1)
        say(f"{batches:,} batches")
    return RollupResult(context.name, batches, joined, alone, left)
