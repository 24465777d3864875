"""`onceover windows`: a pipeline's windows and their states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from onceover.cli.arguments import FromIfAny, PipelineName, ToIfAny, option
from onceover.cli.command import AsJson, command
from onceover.cli.output import Answer, Part, Table
from onceover.cli.ranges import resolve_range
from onceover.cli.root_warning import warn_of_foreign_root
from onceover.context import PipelineContext, open_pipeline
from onceover.detection.future_range import resolve_window
from onceover.errors import UsageError
from onceover.explain.local_times import format_window
from onceover.ledger.landings import count_quarantined
from onceover.ledger.windows import WindowState, count_by_state, find_last_start, list_windows
from onceover.model.ticket import format_holder
from onceover.model.wording import pluralize

_BEGINNING = "0001-01-01T00:00Z"
_MAX_SHOWN = 1_000

State = Annotated[
    str | None,
    option("--state", "STATE", "Only open, closed, failed, repairing, blocked, certified, damaged or expired windows."),
]


@command(
    "onceover windows flights",
    "onceover windows flights --state failed",
    "onceover windows flights --from 2013-01-01T00:00Z --to 2013-01-02T00:00Z --json",
)
def windows(
    pipeline: PipelineName, state: State = None, start: FromIfAny = None, end: ToIfAny = None, json: AsJson = False
) -> Answer:
    """List a pipeline's windows and their states.

    open: records may still arrive. closed: not judged yet. failed: the aggregates are wrong, see the findings.
    repairing: a repair holds the window. blocked: repair failed too often. certified: the aggregates are proved right.
    damaged: certified, but raw was damaged since. expired: its raw is deleted after the pipeline's retention, or it
    counts as expired since a rebuild or by a person's word. "Kafka until" is the time until which the topic's
    retention keeps the records; "taken by" is the person who works on the window, and the ticket.

    Without a range or a state, prints the last 1,000 windows, and counts all; --json has all.
    """
    with open_pipeline(pipeline, "windows") as context:
        if state is not None and state not in list(WindowState):
            raise UsageError(f"--state: unknown state {state!r}; the states are {', '.join(WindowState)}")
        first, last = parse_bounds(context, start, end)
        warn_of_foreign_root(context)
        context.read_registration()
        counts = None
        if not (json or state or start or end):  # of years of windows, people want the last ones
            counts = count_by_state(context.ledger, context.name)
            first = find_last_start(context.ledger, context.name, _MAX_SHOWN)
        rows = list_windows(context.ledger, context.name, WindowState(state) if state else None, first, last)
        if (windowing := context.windowing).zone:
            rows = [{**row, "local": windowing.describe_local(row["window_start"])} for row in rows]
        quarantined = 0 if rows else count_quarantined(context.ledger, context.name)
    hint = (
        f"{pluralize(quarantined, 'record')} landed in quarantine, where no window counts them; to see why: "
        f"`onceover quarantine {context.name} list`"
    )
    return Answer(rows, [*describe(rows, counts), hint if quarantined else None])


def parse_bounds(
    context: PipelineContext, start: str | None, end: str | None
) -> tuple[datetime | None, datetime | None]:
    """Return both times, None for one left out. Raises UsageError for times that are refused in a range."""
    if end is not None:
        chosen = resolve_range(context, start or _BEGINNING, end)
        return (chosen.start if start else None), chosen.end
    return (resolve_window(context, start).start if start is not None else None), None


def describe(rows: Sequence[Mapping[str, Any]], counts: Mapping[WindowState, int] | None = None) -> Iterator[Part]:
    """Yield the windows, and the number in each state: of all windows by these `counts`, else of the ones listed."""
    yield Table(
        rows,
        ("window", lambda row: format_window(row, "window_start")), "state", ">records",
        ("certificate", _format_certificate), (">tries", lambda row: row["tries"] or None),
        ("Kafka until", "log_until"),
        ("taken by", lambda row: row["taken_by"] and format_holder(row["taken_by"], row["ticket"])),
        ("findings", lambda row: row["blocked_why"] or ", ".join(row["findings"]) or None),
        most=None, empty="no window matches",
    )  # fmt: skip
    by_state = Counter[str](counts or (row["state"] for row in rows))
    if (number := by_state.total()) > len(rows):
        yield f"these are the last {len(rows):,}; --from and --to choose others, --json lists all"
    if number:
        listed = ", ".join(f"{count:,} {state}" for state, count in by_state.most_common())
        yield f"{pluralize(number, 'window')}: {listed}"


def _format_certificate(row: Mapping[str, Any]) -> str | None:
    if row["state"] not in (WindowState.CERTIFIED, WindowState.DAMAGED):
        return None
    return f"from {row['basis']}" + (", with a loss" if row["verdict"] != "exact" else "")
