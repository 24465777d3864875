"""`onceover take`: who works on which windows; a person takes or releases them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from onceover.cli.arguments import FromIfAny, PipelineName, ToIfAny, flag, get_user, option
from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED
from onceover.cli.output import Answer, Table
from onceover.cli.ranges import resolve_range_until_now
from onceover.context import open_pipeline
from onceover.errors import UsageError
from onceover.explain.actions import describe_taking
from onceover.ledger.takings import Taking, list_takings, release_windows, take_windows
from onceover.model.reason import clean_reason
from onceover.model.ticket import clean_ticket
from onceover.model.windowing import Windowing

Ticket = Annotated[str | None, option("--ticket", "TEXT", "Where others find what you do about the windows.")]
Release = Annotated[bool, flag("--release", "Release the windows of the range.")]
Over = Annotated[str | None, option("--reason", "TEXT", "Why you take windows from another person, or release theirs.")]


@command(
    "onceover take flights",
    "onceover take flights --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z --ticket INC-42",
    "onceover take flights --from 2013-01-05T14:00Z --to 2013-01-05T16:00Z --release",
    codes={FAILED: "another person has taken some of them; the message says who, and nothing was changed"},
)
def take(
    pipeline: PipelineName,
    start: FromIfAny = None,
    end: ToIfAny = None,
    ticket: Ticket = None,
    release: Release = False,
    reason: Over = None,
) -> Answer:
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
            return Answer(rows, [describe(rows, context.windowing)])
        of_range = (context.ledger, name, resolve_range_until_now(context, start, end), get_user())
        windows, others = release_windows(*of_range, why) if named is None else take_windows(*of_range, named, why)
    verb = "released" if named is None else "taken"
    return Answer({verb: windows, "before": others}, [describe_taking(verb, windows, others)])


def describe(rows: Sequence[Taking], windowing: Windowing) -> Table:
    return Table(
        rows, ("from", lambda each: windowing.show(each.start)), ("to", lambda each: windowing.show(each.end)),
        ">windows", ("by", "who"), "ticket", ("since", "taken_at"), ("taken over because", "why"),
        most=None, empty="no window is taken",
    )  # fmt: skip
