"""`onceover take`: who works on which windows; a person takes or releases them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from onceover.cli.arguments import AsJson, FromIfAny, PipelineName, ToIfAny, get_user
from onceover.cli.exit_codes import FAILED, format_epilog
from onceover.cli.output import draw_table, print_json, say
from onceover.cli.ranges import resolve_range_until_now
from onceover.context import open_pipeline
from onceover.errors import UsageError
from onceover.ledger.takings import Taking, list_takings, release_windows, take_windows
from onceover.model.reason import clean_reason
from onceover.model.ticket import clean_ticket
from onceover.model.wording import pluralize
from onceover.printable import escape

Ticket = Annotated[
    str | None, typer.Option("--ticket", metavar="TEXT", help="Where others find what you do about the windows.")
]
Release = Annotated[bool, typer.Option("--release", metavar="", help="Release the windows of the range.")]
Over = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why you take windows from another person, or release theirs."),
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover take flights",
            "onceover take flights --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z --ticket INC-42",
            "onceover take flights --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z --release",
            codes={FAILED: "another person has taken some of them; the message says who, and nothing was changed"},
        )
    )(take)


def take(
    pipeline: PipelineName,
    start: FromIfAny = None,
    end: ToIfAny = None,
    ticket: Ticket = None,
    release: Release = False,
    reason: Over = None,
    json: AsJson = False,
) -> None:
    """Take windows, so that others see who works on them and for which ticket; without a range, list what is taken.

    The windows of the range that are not certified are yours until each is certified, which ends it by itself. Nothing
    else changes: schedules and other persons may repair them all the same. With a reason you take them over from
    another person.
    """
    why = clean_reason(reason or "")
    named = None if ticket is None else clean_ticket(ticket)
    if (start is None) != (end is None):
        raise UsageError("half a range is named; give both --from and --to")
    if start is None and (named or release or why):
        raise UsageError("no windows are named; give --from and --to")
    if start is not None and release is (named is not None):
        raise UsageError("give either --ticket, to take the windows, or --release")
    with open_pipeline(pipeline, "take") as context:
        name = context.read_registration().name
        if start is None or end is None:
            rows = list_takings(context.ledger, name)
            print_json(rows) if json else show(rows)
            return
        of_range = (context.ledger, name, resolve_range_until_now(context, start, end), get_user())
        windows, others = release_windows(*of_range, why) if named is None else take_windows(*of_range, named, why)
    verb = "released" if named is None else "taken"
    if json:
        print_json({verb: windows, "before": others})
        return
    before = "".join(f"; before: {each.describe()}" for each in others)
    say(f"{pluralize(windows, 'window')} {verb}{escape(before)}")


def show(rows: Sequence[Taking]) -> None:
    if not rows:
        say("no window is taken")
        return
    say(
        draw_table(
            ["from", "to", ">windows", "by", "ticket", "since", "taken over because"],
            ((each.start, each.end, each.windows, each.who, each.ticket, each.taken_at, each.why) for each in rows),
        )
    )
