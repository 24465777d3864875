"""`onceover compact`: certified windows compressed by zstd, smaller than their text and with each record once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from onceover.cli.arguments import AsJson, FromWithTo, PipelineName, ToIfAny, get_user, require_reason
from onceover.cli.exit_codes import FAILED, TRY_LATER, format_epilog
from onceover.cli.output import draw_table, print_json, print_progress, say
from onceover.cli.ranges import resolve_range_if_any
from onceover.cli.spark_entry import make_command, read_result
from onceover.compaction.found import list_due
from onceover.config.duration import DURATION_RULE, parse_duration
from onceover.context import PipelineContext, open_pipeline
from onceover.errors import UsageError
from onceover.ledger.compactions import CompactionDue
from onceover.model.window import WindowRange, format_moment
from onceover.model.wording import pluralize

_MOST_SHOWN = 40

OlderThan = Annotated[
    str,
    typer.Option(
        "--older-than", metavar="DURATION", help="Only windows without a new record for that long, like 90d or 0s."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Only list what would be written; write nothing.")]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why you do this; kept in the ledger with your name.")
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover compact flights --dry-run",
            "onceover compact flights --older-than 90d",
            "onceover compact flights --from 2013-01-01T00:00Z --to 2013-02-01T00:00Z --json",
            codes={
                0: "every window is compacted, or there was none to compact",
                FAILED: "a window's raw differs from its certificate, or changed meanwhile; it is listed",
                TRY_LATER: "a service does not answer, or another process compacts this pipeline; retry later",
            },
        )
    )(compact)


def compact(
    pipeline: PipelineName,
    older_than: OlderThan = "30d",
    start: FromWithTo = None,
    end: ToIfAny = None,
    dry_run: DryRun = False,
    reason: Reason = "to save space",
    json: AsJson = False,
) -> None:
    """Compress certified windows beside their text: a line of each record that counts. `zstdcat` reads the files.

    In a ledger that was restored from a backup, take over the files that compactions after the backup wrote, for
    windows whose text is gone since.

    A file is read back and kept only if its digest equals the certificate's. Text is not deleted: after
    `onceover retention` has expired it, the window is verified, audited and repaired from its compacted file. The
    command may be killed, repeated, or run by two at once.
    """
    with open_pipeline(pipeline, "compact") as context:
        window_range = resolve_range_if_any(
            context, start, end, "--from and --to belong together; leave both out for every certified window"
        )
        older_than_ms = parse_duration(older_than)
        if older_than_ms is None:
            raise UsageError(f"--older-than: {older_than[:40]!r} is not a duration; {DURATION_RULE}")
        why = require_reason(reason, "a compaction")
        due = _list_due(context, older_than_ms, window_range)
    results = [] if dry_run or not due else _run_job(context.name, older_than_ms, window_range, why)
    failed = [row for row in results if row["why"]]
    if json:
        print_json({"pipeline": context.name, "dry_run": dry_run, "older_than_ms": older_than_ms,
                    **_sum_up(due, results), "failed": len(failed),
                    "windows": results or list(map(_to_dict, due))})  # fmt: skip
    else:
        _show(results or list(map(_to_dict, due)), dry_run, _sum_up(due, results))
    if failed:
        raise typer.Exit(FAILED)


def _list_due(context: PipelineContext, older_than_ms: int, window_range: WindowRange | None) -> list[CompactionDue]:
    start, end = (window_range.start, window_range.end) if window_range else (None, None)
    context.require_same_contract()
    found, due = list_due(context, older_than_ms, start, end)
    return [*found, *due]


def _run_job(pipeline: str, older_than_ms: int, window_range: WindowRange | None, why: str) -> list[Mapping[str, Any]]:
    """Run `jobs/compact.py` and return each window's result."""
    print_progress("starting Spark")
    within = (
        ("--from", format_moment(window_range.start), "--to", format_moment(window_range.end)) if window_range else ()
    )
    command = make_command("compact.py", "--pipeline", pipeline, "--older-than-ms", str(older_than_ms), *within,
                           f"--who={get_user()}", f"--why={why}")  # fmt: skip
    results: list[Mapping[str, Any]] = read_result(command)
    return results


def _to_dict(due: CompactionDue) -> Mapping[str, Any]:
    return {"window": format_moment(due.window_start), "records": due.digest.records, "text_bytes": due.text_bytes,
            "bytes": None, "why": None, "found": False}  # fmt: skip


def _sum_up(due: Sequence[CompactionDue], results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    done = [row for row in results if row["bytes"] is not None]
    return {
        "due": len(due),
        "compacted": len(done),
        "records": sum(row["records"] for row in done),
        "text_bytes": sum(row["text_bytes"] for row in done),
        "bytes": sum(row["bytes"] for row in done),
    }


def _show(rows: Sequence[Mapping[str, Any]], dry_run: bool, totals: Mapping[str, int]) -> None:
    shown = [row for row in rows if row["why"]] or rows
    if shown:
        cells = ((row["window"], row["records"], row["text_bytes"], row["bytes"], row["why"]) for row in shown)
        say(draw_table(["window", ">records", ">bytes of text", ">compacted", "failed"], list(cells)[:_MOST_SHOWN]))
    if len(shown) > _MOST_SHOWN:
        say(f"and {len(shown) - _MOST_SHOWN:,} more; --json lists all")
    if dry_run:
        say(f"{pluralize(totals['due'], 'certified window')} would be compacted")
        return
    say(
        f"{pluralize(totals['compacted'], 'window')} compacted, {pluralize(totals['records'], 'record')}: "
        f"{totals['text_bytes']:,} bytes of text, {totals['bytes']:,} compacted"
    )
