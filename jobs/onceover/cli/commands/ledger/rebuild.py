"""`onceover ledger rebuild`: the recovery of a pipeline's part of a lost ledger from raw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onceover.cli.arguments import PipelineName
from onceover.cli.command import command
from onceover.cli.exit_codes import TRY_LATER
from onceover.cli.output import Answer, Part
from onceover.cli.spark_entry import run_job
from onceover.context import open_pipeline
from onceover.model.wording import pluralize

_MAX_SHOWN = 20


@command(
    "onceover ledger rebuild flights", codes={TRY_LATER: "a service does not answer, or ingest runs; stop ingest first"}
)
def rebuild(pipeline: PipelineName) -> Answer:
    """Rebuild a pipeline's batches, landings, windows and frontiers in a lost ledger from its raw files alone.

    Reads all of raw with Spark, compacted files too. Refuses a pipeline whose batches the ledger has. Afterwards it is
    unknown which records the aggregates count: the next repair rebuilds and certifies every window. Windows with
    aggregates but no raw file count as expired. Earlier certificates and reasons are lost with the ledger; offsets
    that raw does not hold are holes, which the next detection judges.
    """
    with open_pipeline(pipeline, "rebuild") as context:
        context.require_addresses("postgres", "kafka")
        name = context.name
    result = run_job("rebuild_ledger.py", "--pipeline", name, doing=", which reads all of raw")
    return Answer(result, describe(name, result))


def describe(name: str, result: Mapping[str, Any]) -> Iterator[Part]:
    windows, records, files = (pluralize(result[f"{noun}s"], noun) for noun in ("window", "record", "file"))
    yield f"rebuilt {windows} with {records} in the ledger, from {files}"
    if result["expired"]:
        yield f"{pluralize(result['expired'], 'window')} without their raw: expired, the aggregates stay as they are"
    if result["foreign"]:
        foreign = pluralize(result["foreign"], "record")
        yield f"{foreign} of a log that this pipeline never read, by the root's marker: left out"
    for hole in result["holes"][:_MAX_SHOWN]:
        yield f"raw does not hold {hole}"
    if len(result["holes"]) > _MAX_SHOWN:
        yield f"and {len(result['holes']) - _MAX_SHOWN} more ranges: `onceover holes {name}`"
    if result["in_neither"]:
        number = pluralize(result["in_neither"], "offset")
        yield (
            f"{number} of these are no longer in Kafka either: control markers, or compacted, expired or lost records. "
            f"Windows close once they are accepted as lost: `onceover accept-loss {name} RANGE --from TIME --to TIME "
            '--reason "..."`, where RANGE may span many of them'
        )
    yield f"Now start ingest, which closes windows, then repair: `onceover ingest {name}`"
