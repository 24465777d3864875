"""`onceover offsets`: a pipeline's next offsets, by the store, Kafka and the ledger: shown, set or copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from onceover.cli.arguments import PipelineName, Reason, flag, get_user, option, refuse_others, require_reason
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED, TRY_LATER
from onceover.cli.output import Answer, Table
from onceover.context import PipelineContext, open_pipeline
from onceover.errors import UsageError
from onceover.model.json_text import to_plain
from onceover.model.offsets import MAX_KAFKA_PARTITION
from onceover.model.pipeline import OFFSET_STORES
from onceover.model.wording import pluralize
from onceover.offset_stores.admin import copy_offsets, inspect_offsets, set_offsets
from onceover.offset_stores.store import MOST

Do = Annotated[Literal["show", "set", "copy"], typer.Argument(metavar="ACTION", help="show, set or copy.")]
Values = Annotated[
    list[str] | None,
    typer.Argument(metavar="PARTITION=OFFSET", help="With set: a Kafka partition and the next offset to read from it."),
]
To = Annotated[str | None, option("--to", "STORE", f"With copy: the new store, {', '.join(OFFSET_STORES)}.")]
At = Annotated[str, option("--path", "PATH", "With copy to file, hdfs or checkpoint: where to keep the offsets.")]

PastEnd = Annotated[
    bool,
    flag(
        "--past-end",
        "With set: an offset may lie beyond the log's end, for the log was cut after it was read so far. Once "
        "ingest has started with it, it cannot be lowered.",
    ),
]


@command(
    "onceover offsets flights show",
    'onceover offsets flights set 0=1200 3=950 --reason "INC-42: read the afternoon again"',
    'onceover offsets flights set 0=1200 --past-end --reason "INC-43: the log was cut at 900"',
    'onceover offsets flights copy --to postgres --reason "one store less to maintain"',
    'onceover offsets flights copy --to checkpoint --path /checkpoints/flights --reason "back to the query"',
    codes={
        FAILED: "the stored offsets cannot be read, or are another topic's",
        TRY_LATER: "ingest runs; stop it first",
    },
)
def offsets(
    pipeline: PipelineName,
    action: Do,
    values: Values = None,
    to: To = None,
    path: At = "",
    past_end: PastEnd = False,
    reason: Reason = None,
) -> Answer:
    """Show the offsets from which a pipeline reads next, set them, or copy them to another offset store.

    show reads only. set and copy need a reason, which the ledger keeps, and a stopped ingest. After an offset is set
    ahead, the next repair reads the skipped offsets again; after one is set back, records land twice and the next
    repair counts them once. While a log that was cut and has grown again is read again, reading starts at the first
    other record at the latest. After a copy, name the new store in the pipeline's TOML before you start ingest again.
    """
    with open_pipeline(pipeline, "offsets") as context:
        refuse_others(
            action,
            ("PARTITION=OFFSET", bool(values), ("set",)),
            ("--to", to is not None, ("copy",)),
            ("--path", bool(path), ("copy",)),
            ("--past-end", past_end, ("set",)),
        )
        if action == "set":
            return _set(context, values or (), reason, past_end=past_end)
        return _copy(context, to, path, reason) if action == "copy" else _show(context)


def _show(context: PipelineContext) -> Answer:
    seen = inspect_offsets(context)
    return Answer(
        {"pipeline": context.name, **to_plain(seen)},
        [
            f"{context.name} keeps its offsets in {seen.store}: {seen.place}; topic ID {seen.topic_id}",
            Table(
                seen.kafka_partitions, (">partition", lambda each: str(each.kafka_partition)),
                (">log starts", "earliest"), ">stored", (">log ends", "end"),
                (">to read", lambda each: None if each.stored is None else max(0, each.end - each.stored)),
                ">frontier", ">reach", most=None,
            ),
            f"The stored offsets are not used: {seen.trouble}" if seen.trouble else None,
        ],
        FAILED if seen.trouble else 0,
    )  # fmt: skip


def _set(context: PipelineContext, values: Sequence[str], reason: str | None, *, past_end: bool) -> Answer:
    new_offsets = dict(map(_parse_pair, values))
    if not new_offsets or len(new_offsets) != len(values):
        raise UsageError("set takes PARTITION=OFFSET, each Kafka partition once, like 0=1200 3=950")
    stored = set_offsets(context, new_offsets, get_user(), require_reason(reason, "setting offsets"), past_end=past_end)
    shown = ", ".join(f"{p}={offset}" for p, offset in sorted(stored.items()))
    start = f"stored now: {shown}; the next `onceover ingest {context.name}` reads from there"
    if past_end:
        start += ", or from the log's end if that is smaller; what raw holds up to there counts by the next repair"
    return Answer({"pipeline": context.name, "store": context.pipeline.ingest.offset_store, "stored": stored}, [start])


def _copy(context: PipelineContext, to: str | None, path: str, reason: str | None) -> Answer:
    if to is None or to not in OFFSET_STORES:
        raise UsageError(f"copy needs --to with one of {', '.join(OFFSET_STORES)}" + (f", not {to!r}" if to else ""))
    source = context.pipeline.ingest.offset_store
    stored = copy_offsets(context, to, path, get_user(), require_reason(reason, "copying offsets"))
    at = f' and offset_path = "{path}"' if path else ""
    return Answer(
        {"pipeline": context.name, "store": to, "stored": stored},
        [
            f"{pluralize(len(stored), 'offset')} copied from {source} to {to} and read back. Now "
            f'write offset_store = "{to}"{at} under [ingest] in pipelines/{context.name}.toml, then start ingest'
        ],
    )


def _parse_pair(text: str) -> tuple[int, int]:
    kafka_partition, equals, offset = text.partition("=")
    if not equals or not all(part.isascii() and part.isdigit() for part in (kafka_partition, offset)):
        raise UsageError(f"{text[:40]!r} is not PARTITION=OFFSET, like 0=1200, digits alone")
    return _parse_number(kafka_partition, MAX_KAFKA_PARTITION), _parse_number(offset, MOST)


def _parse_number(digits: str, most: int) -> int:
    """Return the number. Raises UsageError above `most`, also for thousands of digits, which `int` refuses."""
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(most)) or int(significant) > most:
        raise UsageError(f"{significant[:40]} is too large; the largest possible number is {most}")
    return int(significant)
