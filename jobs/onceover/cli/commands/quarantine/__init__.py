"""`onceover quarantine`: records that fit no window: their days and reasons, their contents, and their release once
the contract has a window for them."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

import typer

from onceover.cli.arguments import PipelineName, flag, option, refuse_others
from onceover.cli.command import command
from onceover.cli.commands.quarantine.contents import list_days, show_records
from onceover.cli.commands.quarantine.release import release
from onceover.cli.exit_codes import TRY_LATER
from onceover.cli.output import Answer
from onceover.context import open_pipeline
from onceover.errors import UsageError
from onceover.ledger.releases import list_releases
from onceover.model.offsets import OffsetSet

Do = Annotated[Literal["list", "show", "release"], typer.Argument(metavar="ACTION", help="list, show or release.")]
Day = Annotated[str | None, option("--day", "DATE", "Only records quarantined on this day, UTC. Default: all days.")]
Reason = Annotated[
    str | None, option("--reason", "TEXT", "With show or release: only records whose reason contains TEXT.")
]
Why = Annotated[
    str | None, option("--why", "TEXT", "With release: why you do this; kept in the ledger with your name.")
]
DryRun = Annotated[bool, flag("--dry-run", "With release: only list what would land; write nothing.")]
Limit = Annotated[int | None, option("--limit", "N", "With show: at most N records. Default: 20.", min=1)]


@command(
    "onceover quarantine flights list",
    "onceover quarantine flights list --day 2026-03-01 --json",
    'onceover quarantine flights show --reason "beyond horizon" --limit 5',
    "onceover quarantine flights release --dry-run",
    'onceover quarantine flights release --reason "beyond horizon" --why "INC-42: the horizon is a week now"',
    codes={
        0: "the records were shown, or every record that fits a window now has landed",
        TRY_LATER: "ingest runs, stop it first; or a service does not answer, retry later",
    },
)
def quarantine(
    pipeline: PipelineName,
    action: Do,
    day: Day = None,
    reason: Reason = None,
    limit: Limit = None,
    why: Why = None,
    dry_run: DryRun = False,
) -> Answer:
    """List quarantined records by day and reason, show some of them, or release those that fit a window now.

    A record is quarantined if it cannot be parsed, or if the contract has no window for it. No aggregate counts it,
    and nothing of it is lost: ROOT/PIPELINE/quarantine/DATE.log keeps key, headers and value unchanged. A record is
    listed once, however often its batch was retried.

    release parses the records again by the contract in force: stop ingest and change the contract first
    (`onceover pipelines migrate`). Records that fit a window now land in it and leave the quarantine for good; their
    windows are judged again. The command may be killed and repeated.
    """
    chosen = _parse_date(day)
    with open_pipeline(pipeline, "quarantine") as context:
        refuse_others(
            action,
            ("--reason", reason is not None, ("show", "release")),
            ("--limit", limit is not None, ("show",)),
            ("--dry-run", dry_run, ("release",)),
            ("--why", why is not None, ("release",)),
        )
        if action == "release":
            return release(context.name, chosen, reason, why, dry_run)
        context.require_known_format()
        days = {each: size for each, size in context.files.list_quarantine_days().items() if chosen in (None, each)}
        released = OffsetSet(offsets for each in list_releases(context.ledger, context.name) for offsets in each.ranges)
        if action == "list":
            return list_days(context.name, context.files, days, released)
        return show_records(context.files, days, released, reason, limit or 20)


def _parse_date(day: str | None) -> date | None:
    if day is None:
        return None
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise UsageError(f"--day takes a date like 2026-03-01, not {day[:40]!r}") from None
