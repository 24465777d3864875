"""`onceover quarantine`: records that have no place in any window, by day and reason, what they hold, and their release
once the contract has a place for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.commands.quarantine.contents import list_days, show_records
from onceover.cli.commands.quarantine.release import release
from onceover.cli.exit_codes import TRY_LATER, epilog
from onceover.context import open_pipeline
from onceover.errors import UsageError
from onceover.ledger.releases import list_releases
from onceover.quarantine.reader import QuarantineFiles, ReleasedIds


class Action(StrEnum):
    """What to do with the quarantine."""

    LIST = "list"
    SHOW = "show"
    RELEASE = "release"


Do = Annotated[Action, typer.Argument(metavar="ACTION", help="list, show or release.")]
Day = Annotated[
    str | None, typer.Option("--day", metavar="DATE", help="The day a record was put there, UTC; else all.")
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Not with list: only records whose reason contains this text."),
]
Why = Annotated[
    str | None, typer.Option("--why", metavar="TEXT", help="With release: kept with it, and with who said so.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", metavar="", help="With release: only say what would land; write nothing.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, help="With show: so many records at most; else 20.")
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover quarantine flights list",
            "onceover quarantine flights list --day 2026-03-01 --json",
            'onceover quarantine flights show --reason "beyond horizon" --limit 5',
            "onceover quarantine flights release --dry-run",
            'onceover quarantine flights release --reason "beyond horizon" --why "INC-42: the horizon is a week now"',
            codes={
                0: "it was shown, or everything that has a place now has landed there",
                TRY_LATER: "ingest runs, stop it; or a part does not answer",
            },
        )
    )(quarantine)


def quarantine(
    pipeline: PipelineName,
    action: Do,
    day: Day = None,
    reason: Reason = None,
    limit: Limit = None,
    why: Why = None,
    dry_run: DryRun = False,
    json: AsJson = False,
) -> None:
    """List what is in quarantine by day and reason, show some of its records, or release what has a place now.

    A record is there because it cannot be parsed, or because the contract has no window for it. It is accounted for, no
    aggregate counts it, and nothing of it is lost: key, headers and value stand in ROOT/PIPELINE/quarantine/DATE.log as
    they came. A record counts once, however often its batch was read again.

    Release parses them again by the contract in force, so migrate first (`onceover pipelines migrate`), while ingest is
    stopped. What has a place lands there, its windows are judged again, and it is no longer in quarantine, for good.
    It may be killed or run twice.
    """
    with open_pipeline(pipeline, "quarantine") as context:
        if reason is not None and action is Action.LIST:
            raise UsageError("list takes no --reason; that is for show and release")
        if limit is not None and action is not Action.SHOW:
            raise UsageError(f"{action} takes no --limit; that is for show")
        if action is Action.RELEASE:
            release(context.name, _date(day), reason, why, dry_run, json)
            return
        if dry_run or why is not None:
            raise UsageError(f"{action} takes no --dry-run and no --why; those are for release")
        days = _days(context.files, day)
        gone = ReleasedIds(piece for one in list_releases(context.ledger, context.name) for piece in one.ranges)
        if action is Action.LIST:
            list_days(context.name, context.files, days, gone, json)
        else:
            show_records(context.files, days, gone, reason, limit or 20, json)


def _days(files: QuarantineFiles, day: str | None) -> Mapping[date, int]:
    chosen = _date(day)
    return {each: size for each, size in files.list_quarantine_days().items() if chosen in (None, each)}


def _date(day: str | None) -> date | None:
    if day is None:
        return None
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise UsageError(f"--day takes a date like 2026-03-01, not {day[:40]!r}") from None
