"""`onceover offsets`: where reading goes on, said by the store, by Kafka and by the ledger; set, or moved elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, PipelineName, Reason, given, who
from onceover.cli.exit_codes import FAILED, TRY_LATER, epilog
from onceover.cli.output import as_json, draw_table, say
from onceover.context import PipelineContext, open_pipeline
from onceover.errors import UsageError
from onceover.explain.finding_text import pluralize
from onceover.model.json_text import to_plain
from onceover.model.offsets import MAX_KAFKA_PARTITION
from onceover.model.pipeline import OFFSET_STORES
from onceover.offset_stores.admin import OffsetInspection, copy_offsets, inspect_offsets, set_offsets
from onceover.offset_stores.store import MOST


class Action(StrEnum):
    """What to do with the offsets."""

    SHOW = "show"
    SET = "set"
    COPY = "copy"


Do = Annotated[Action, typer.Argument(metavar="ACTION", help="show, set or copy.")]
Values = Annotated[
    list[str] | None, typer.Argument(metavar="PARTITION=OFFSET", help="With set: the next offset to read, each.")
]
To = Annotated[str | None, typer.Option("--to", metavar="STORE", help=f"With copy: {', '.join(OFFSET_STORES)}.")]
At = Annotated[
    str, typer.Option("--path", metavar="PATH", help="With copy: where the offsets of a file, hdfs or checkpoint lie.")
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover offsets flights show",
            'onceover offsets flights set 0=1200 3=950 --reason "INC-42: read the afternoon again"',
            'onceover offsets flights copy --to postgres --reason "one store less to look after"',
            'onceover offsets flights copy --to checkpoint --path /checkpoints/flights --reason "back to the query"',
            codes={FAILED: "what is stored cannot be read, or is another topic's", TRY_LATER: "ingest runs, stop it"},
        )
    )(offsets)


def offsets(
    pipeline: PipelineName,
    action: Do,
    values: Values = None,
    to: To = None,
    path: At = "",
    reason: Reason = None,
    json: AsJson = False,
) -> None:
    """Show where a pipeline's reading goes on, set it, or copy it to another offset store.

    show reads only. set and copy need a reason, which is kept, and an ingest that does not run. An offset set ahead
    skips nothing for ever, the next repair reads the hole again; one set back lands records twice, and the next repair
    counts them once. After a copy, name the new store in the pipeline's TOML before ingest starts again.
    """
    with open_pipeline(pipeline, "offsets") as context:
        if values and action is not Action.SET:
            raise UsageError(f"{action} takes no PARTITION=OFFSET; that is for set")
        if to is not None and action is not Action.COPY:
            raise UsageError(f"{action} takes no --to; that is for copy")
        if path and action is not Action.COPY:
            raise UsageError(f"{action} takes no --path; that is for copy")
        match action:
            case Action.SHOW:
                _show(context, json)
            case Action.SET:
                _set(context, values or (), reason, json)
            case Action.COPY:
                _copy(context, to, path, reason, json)


def _show(context: PipelineContext, json: bool) -> None:
    seen = inspect_offsets(context)
    if json:
        as_json({"pipeline": context.name, **to_plain(seen)})
    else:
        _draw(context.name, seen)
    if seen.trouble:
        raise typer.Exit(FAILED)


def _draw(name: str, seen: OffsetInspection) -> None:
    say(f"{name} keeps its offsets in {seen.store}: {seen.place}; topic ID {seen.topic_id}", whole=True)
    say(
        draw_table(
            [">partition", ">log starts", ">stored", ">log ends", ">to read", ">frontier", ">reach"],
            (
                (
                    str(p.kafka_partition), p.earliest, p.stored, p.end,
                    None if p.stored is None else max(0, p.end - p.stored), p.frontier, p.reach,
                )
                for p in seen.kafka_partitions
            ),
        )
    )  # fmt: skip
    if seen.trouble:
        say(f"What is stored does not count: {seen.trouble}")


def _set(context: PipelineContext, values: Sequence[str], reason: str | None, json: bool) -> None:
    wanted = dict(map(_pair, values))
    if not wanted or len(wanted) != len(values):
        raise UsageError("set takes PARTITION=OFFSET, each Kafka partition once, like 0=1200 3=950")
    stored = set_offsets(context, wanted, who(), given(reason, "setting offsets"))
    if json:
        as_json({"pipeline": context.name, "store": context.pipeline.ingest.offset_store, "stored": stored})
    else:
        shown = ", ".join(f"{p}={offset}" for p, offset in sorted(stored.items()))
        say(f"stored now: {shown}; the next `onceover ingest {context.name}` reads from there")


def _copy(context: PipelineContext, to: str | None, path: str, reason: str | None, json: bool) -> None:
    if to is None or to not in OFFSET_STORES:
        raise UsageError(f"copy needs --to with one of {', '.join(OFFSET_STORES)}" + (f", not {to!r}" if to else ""))
    source = context.pipeline.ingest.offset_store
    stored = copy_offsets(context, to, path, who(), given(reason, "copying offsets"))
    if json:
        as_json({"pipeline": context.name, "store": to, "stored": stored})
    else:
        at = f' and offset_path = "{path}"' if path else ""
        say(
            f"{pluralize(len(stored), 'offset')} copied from {source} to {to} and read back. Now "
            f'write offset_store = "{to}"{at} under [ingest] in pipelines/{context.name}.toml, then start ingest'
        )


def _pair(text: str) -> tuple[int, int]:
    kafka_partition, equals, offset = text.partition("=")
    if not equals or not all(part.isascii() and part.isdigit() for part in (kafka_partition, offset)):
        raise UsageError(f"{text[:40]!r} is not PARTITION=OFFSET, like 0=1200")
    return _number(kafka_partition, MAX_KAFKA_PARTITION), _number(offset, MOST)


def _number(digits: str, most: int) -> int:
    """Of thousands of digits Python would make no number at all."""
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(most)) or int(significant) > most:
        raise UsageError(f"{significant[:40]} is too much; the most that can be is {most}")
    return int(significant)
