"""`onceover verify` and `onceover audit`: prove it again, from raw and from Kafka's log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from onceover.cli.arguments import AsJson, PipelineName, entry, range_of, window_of
from onceover.cli.commands.explain import WindowStart
from onceover.cli.commands.repair import who
from onceover.cli.exit_codes import FAILED, TRY_LATER, epilog
from onceover.cli.output import as_json, progress, say, table
from onceover.cli.spark_entry import run
from onceover.errors import UsageError
from onceover.explain.finding_text import counted

From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="Start of the first window.")]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="End of the last window; exclusive.")]
_MOST_SHOWN = 50
_CODES = {0: "all sides hold the same", FAILED: "they differ", TRY_LATER: "a part does not answer"}


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover verify flights 2013-01-05T14:00Z",
            "onceover verify flights 2013-01-05T14:00Z --json",
            codes=_CODES | {FAILED: "they differ, or the window has no certificate"},
        )
    )(verify)
    app.command(
        epilog=epilog(
            "onceover audit flights",
            "onceover audit flights --from 2013-01-05T00:00Z --to 2013-01-06T00:00Z --json",
            codes=_CODES,
        )
    )(audit)


def verify(pipeline: PipelineName, window: WindowStart, json: AsJson = False) -> None:
    """Recompute a window's certificate from raw and from the rows of the aggregates, and say equal or where not.

    Reads the window file whole, with Spark; changes nothing. The result is kept in the ledger, in `onceover.audit`.
    """
    from onceover.audit import service as audit_service
    from onceover.config.pipelines import find

    known = find(pipeline)
    chosen = window_of(known, window)
    audit_id = audit_service.ask(known.name, "window", start=chosen.start, end=chosen.end, who=who())
    found = _carried_out(known.name, audit_id)
    if json:
        as_json({"pipeline": known.name, "window": str(chosen), "audit_id": audit_id, **found})
    else:
        say(
            table(
                ["side", ">records", "digest"],
                (
                    (side, found[side]["records"], found[side]["digest"])
                    for side in ("certificate", "raw", "aggregates")
                ),
            )
        )
        for difference in found["differences"]:
            say(difference)
        if not found["stands"]:
            say(f"Its certificate stands no longer; why: `onceover explain {known.name} {chosen}`.")
        say(f"window {chosen} of {known.name}: {'equal' if found['equal'] else 'NOT equal'}")
    _end(found)


def audit(pipeline: PipelineName, start: From = None, end: To = None, json: AsJson = False) -> None:
    """Read Kafka's log again and hold it against raw and the aggregates, window by window, as sets of records.

    Without a range: everything that the log still holds, quarantine too. With one: the offsets that its windows were
    landed from. Changes nothing. The result is kept in the ledger, in `onceover.audit`.
    """
    from onceover.audit import service as audit_service
    from onceover.config.pipelines import find

    known = find(pipeline)
    if (start is None) != (end is None):
        raise UsageError("give both --from and --to, or neither for all windows")
    chosen = range_of(known, start, end) if start and end else None
    audit_id = audit_service.ask(
        known.name, "log", start=chosen.start if chosen else None, end=chosen.end if chosen else None, who=who()
    )
    if audit_id is None:
        raise UsageError(f"pipeline {known.name} has not run yet; start it with `onceover ingest {known.name}`")
    found = _carried_out(known.name, audit_id)
    if json:
        as_json({"pipeline": known.name, "audit_id": audit_id, **found})
    else:
        show(found)
    _end(found)


def show(found: Mapping[str, Any]) -> None:
    """The three sides of the windows that differ, or of the first ones, with the IDs that differ."""
    rows = [row for row in found["rows"] if not row["equal"]] or found["rows"]
    say(
        table(
            ["window", ">Kafka", ">raw", ">lines", ">aggregates", "verdict"],
            (
                (row["window"], row["kafka"], row["raw"], row["raw_lines"], row["aggregates"], _verdict(row))
                for row in rows[:_MOST_SHOWN]
            ),
        )
    )
    if len(rows) > _MOST_SHOWN:
        say(f"and {len(rows) - _MOST_SHOWN:,} more; all of them with --json")
    for row in rows[:_MOST_SHOWN]:
        for kind, ids in row["ids"].items():
            more = f" and {ids['count'] - len(ids['first']):,} more" if ids["count"] > len(ids["first"]) else ""
            say(f"{row['window']} {kind}: {', '.join(ids['first'])}{more}")
        for difference in row["rows"]:
            say(f"{row['window']} row {difference}")
    silent = found["offsets"] - found["records"]
    say(
        f"{counted(found['windows'], 'window')}, {found['differing']:,} differ; {counted(found['offsets'], 'offset')} "
        f"read, {counted(found['records'], 'record')} delivered"
        + (f", {silent:,} hold none (markers, aborted, compacted, or of other windows)" if silent else "")
    )


def _verdict(row: Mapping[str, Any]) -> str:
    if row["equal"]:
        return f"equal; aggregates not compared: {row['not_compared']}" if row["not_compared"] else "equal"
    wrong = [f"{ids['count']:,} {kind}" for kind, ids in row["ids"].items()]
    if row["aggregates_equal"] is False:
        wrong.append("the aggregates count another set")
    if row["rows_differing"]:
        wrong.append(f"{row['rows_differing']:,} rows differ")
    return "; ".join(wrong)


def _carried_out(pipeline: str, audit_id: int | None) -> Mapping[str, Any]:
    from onceover.audit import service as audit_service

    progress("starting Spark")
    ended = run(entry("audit.py", "--pipeline", pipeline, "--audit", str(audit_id)))
    if ended:
        raise typer.Exit(ended)
    return audit_service.result(pipeline, audit_id or 0)


def _end(found: Mapping[str, Any]) -> None:
    if not found["equal"]:
        raise typer.Exit(FAILED)
