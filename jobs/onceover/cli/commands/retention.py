"""`onceover retention`: raw that is older than its pipeline keeps it goes, listed first."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, PipelineName, given, who
from onceover.cli.exit_codes import TRY_LATER, epilog
from onceover.cli.output import Occasionally, as_json, draw_table, say
from onceover.context import open_pipeline
from onceover.explain.finding_text import pluralize
from onceover.retention.service import ExpiryDue, ExpiryResult, expire, plan_expiry

_MOST_SHOWN = 40

DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Only say what would go; write nothing.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Kept with what goes, and with who said so.")]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover retention flights --dry-run",
            "onceover retention flights",
            'onceover retention flights --reason "room for the new cluster" --json',
            codes={TRY_LATER: "all is let go, and the ingest that runs has not moved all of it away yet"},
        )
    )(retention)


def retention(
    pipeline: PipelineName, dry_run: DryRun = False, reason: Reason = "by the policy", json: AsJson = False
) -> None:
    """Let raw and quarantine go that nothing has come to for longer than the pipeline keeps it (`storage.retention`).

    Only windows whose certificate stands go. Where `onceover compact` has written their records as Parquet, that stands
    in for the text from then on. Else they are expired: the certificate stays, detection is silent about them, a repair
    is refused. Files are moved to ROOT/PIPELINE/expired, by ingest if it runs, and deleted a day later by ingest or by
    the next run of this. It may be killed, run twice, or run by two at once.
    """
    with open_pipeline(pipeline, "retention") as context:
        why = given(reason, "retention")
        listed = plan_expiry(context)
        went = ExpiryResult(0, 0) if dry_run else expire(context, listed, who(), why, Occasionally())
    if json:
        as_json(
            {
                **listed.as_dict(), "dry_run": dry_run, "let_go": went.expired, "left": went.left,
                "files": [{"window": x.window_start, "quarantine_day": x.quarantine_day, "bytes": x.bytes,
                           "records": x.records, "landed_at": x.landed_at, "compacted": x.compacted}
                          for x in listed.files],
            }
        )  # fmt: skip
    else:
        _show(listed, dry_run, went)
    if went.left:
        raise typer.Exit(TRY_LATER)


def _show(listed: ExpiryDue, dry_run: bool, went: ExpiryResult) -> None:
    files = listed.files
    if files:
        rows = ((x.window_start or f"quarantine {x.quarantine_day}", x.records, x.bytes, x.landed_at) for x in files)
        say(draw_table(["raw of", ">records", ">bytes", "last landed"], list(rows)[:_MOST_SHOWN]))
    if len(files) > _MOST_SHOWN:
        say(f"and {len(files) - _MOST_SHOWN:,} more; all of them with --json")
    windows, days = pluralize(listed.windows, "certified window"), pluralize(listed.quarantine_days, "day")
    what = f"{windows} and {days} of quarantine, {listed.bytes:,} bytes,"
    say(f"{what} {'would go' if dry_run else 'are older than the pipeline keeps them'}")
    if listed.compacted:
        say(f"of these, {pluralize(listed.compacted, 'window')} stay repairable from Parquet")
    if listed.kept_back:
        say(f"{pluralize(listed.kept_back, 'window')} as old stay: not certified, blocked, or held by a repair")
    if not dry_run:
        left = f", {went.left:,} still to be moved away" if went.left else ""
        say(f"{pluralize(went.expired, 'file')} let go{left}")
