"""`onceover compact`: certified windows as Parquet beside their text, smaller, and each record once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from onceover.cli.arguments import AsJson, FromWithTo, PipelineName, ToIfAny, given, who
from onceover.cli.exit_codes import FAILED, TRY_LATER, epilog
from onceover.cli.output import as_json, draw_table, print_progress, say
from onceover.cli.ranges import range_if_any
from onceover.cli.spark_entry import entry, read_result
from onceover.config.duration import DURATION_RULE, parse_duration
from onceover.context import PipelineContext, open_pipeline
from onceover.errors import UsageError
from onceover.explain.finding_text import pluralize
from onceover.ledger import compactions
from onceover.ledger.compactions import CompactionDue
from onceover.model.window import WindowRange, format_moment

_MOST_SHOWN = 40

OlderThan = Annotated[
    str,
    typer.Option(
        "--older-than", metavar="DURATION", help="Only windows that nothing has come to for so long: 90d, 0s."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Only say what would be written; write nothing.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Kept with each file, and with who said so.")]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover compact flights --dry-run",
            "onceover compact flights --older-than 90d",
            "onceover compact flights --from 2013-01-01T00:00Z --to 2013-02-01T00:00Z --json",
            codes={
                0: "every window is compacted, or there was none",
                FAILED: "a window's raw is not what its certificate says, or it changed meanwhile, and was named",
                TRY_LATER: "a part does not answer, or another process compacts this pipeline",
            },
        )
    )(compact)


def compact(
    pipeline: PipelineName,
    older_than: OlderThan = "30d",
    start: FromWithTo = None,
    end: ToIfAny = None,
    dry_run: DryRun = False,
    reason: Reason = "to save room",
    json: AsJson = False,
) -> None:
    """Write certified windows as Parquet beside their text: the records that count, each once.

    A file is read back, and kept only if its digest is the certificate's. Text is not deleted: once retention lets it
    go, the Parquet file stands in for it, and the window is verified, audited and repaired as before. It may be
    killed, run twice, or run by two at once.
    """
    with open_pipeline(pipeline, "compact") as context:
        asked = range_if_any(
            context, start, end, "--from and --to belong together; leave both out for every certified window"
        )
        longer = parse_duration(older_than)
        if longer is None:
            raise UsageError(f"--older-than: {older_than[:40]!r} is no duration; {DURATION_RULE}")
        why = given(reason, "a compaction")
        due = _due(context, longer, asked)
    ended = [] if dry_run or not due else _carried_out(context.name, longer, asked, why)
    failed = [each for each in ended if each["why"]]
    if json:
        as_json({"pipeline": context.name, "dry_run": dry_run, "older_than_ms": longer, **_totals(due, ended),
                 "failed": len(failed), "windows": ended or list(map(_as_dict, due))})  # fmt: skip
    else:
        _show(ended or list(map(_as_dict, due)), dry_run, _totals(due, ended))
    if failed:
        raise typer.Exit(FAILED)


def _due(context: PipelineContext, longer: int, asked: WindowRange | None) -> list[CompactionDue]:
    start, end = (asked.start, asked.end) if asked else (None, None)
    context.require_same_contract()
    return compactions.list_compactable(context.ledger, context.name, longer, start, end)


def _carried_out(pipeline: str, longer: int, asked: WindowRange | None, why: str) -> list[Mapping[str, Any]]:
    """What `jobs/compact.py` says became of each window."""
    print_progress("starting Spark")
    within = ("--from", format_moment(asked.start), "--to", format_moment(asked.end)) if asked else ()
    command = entry("compact.py", "--pipeline", pipeline, "--older-than-ms", str(longer), *within,
                    f"--who={who()}", f"--why={why}")  # fmt: skip
    found: list[Mapping[str, Any]] = read_result(command)
    return found


def _as_dict(due: CompactionDue) -> Mapping[str, Any]:
    return {"window": format_moment(due.window_start), "records": due.digest.records, "text_bytes": due.text_bytes,
            "bytes": None, "why": None}  # fmt: skip


def _totals(due: Sequence[CompactionDue], ended: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    done = [each for each in ended if each["bytes"] is not None]
    return {
        "due": len(due),
        "compacted": len(done),
        "records": sum(each["records"] for each in done),
        "text_bytes": sum(each["text_bytes"] for each in done),
        "bytes": sum(each["bytes"] for each in done),
    }


def _show(rows: Sequence[Mapping[str, Any]], dry_run: bool, totals: Mapping[str, int]) -> None:
    shown = [row for row in rows if row["why"]] or rows
    if shown:
        cells = ((row["window"], row["records"], row["text_bytes"], row["bytes"], row["why"]) for row in shown)
        say(draw_table(["window", ">records", ">bytes of text", ">of Parquet", "failed"], list(cells)[:_MOST_SHOWN]))
    if len(shown) > _MOST_SHOWN:
        say(f"and {len(shown) - _MOST_SHOWN:,} more; all of them with --json")
    if dry_run:
        say(f"{pluralize(totals['due'], 'certified window')} would be compacted")
        return
    say(
        f"{pluralize(totals['compacted'], 'window')} compacted, {pluralize(totals['records'], 'record')}: "
        f"{totals['text_bytes']:,} bytes of text, {totals['bytes']:,} of Parquet"
    )
