"""The page of `onceover explain` on a terminal, section by section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.padding import Padding
from rich.text import Text

from onceover.cli.output import STYLES, Part, Section, Table
from onceover.config.endpoints import find_address
from onceover.explain.finding_text import FindingText, describe_finding, parse_offset_ranges
from onceover.explain.gather import WindowFacts
from onceover.explain.view import (
    NO_LANDING,
    describe_certificate,
    describe_certificate_basis,
    describe_loss,
    describe_marks,
    describe_notes,
    describe_origin,
    describe_repair,
    describe_verdict,
    list_places,
    select_landings,
)
from onceover.model.window import format_minute, format_moment, format_second
from onceover.model.wording import format_records, pluralize
from onceover.printable import escape

_MOST_LOSSES = 20


def describe(known: WindowFacts) -> Iterator[Part]:
    """Yield a window's state, findings, landings, repairs, certificate, places and next steps."""
    state, rows = known.state, known.rows
    title = f"{known.pipeline}, window {known.window} to {format_moment(known.window.end)}: "
    yield Text.assemble((title, "bold"), (state, STYLES.get(state, "bold")))
    yield f"{describe_verdict(known)} The aggregates count {format_records(rows['window']['records'])}."
    yield from (f"It is {taken.describe_holder()}." for taken in rows["taken"])
    yield from describe_notes(known)
    lost = [describe_loss(row) for row in rows["losses"]]
    more = f"And {len(lost) - _MOST_LOSSES:,} more ranges." if len(lost) > _MOST_LOSSES else None
    yield Section("What is lost for ever", [*lost[:_MOST_LOSSES], more])
    nothing = "Nothing." if known.judged is not None else "Nothing recorded in the ledger."
    yield Section("What is wrong", [_format_finding(row, known) for row in known.findings] or [nothing])
    of_pipeline = [{"kind": each.kind, "evidence": each.evidence} for each in known.of_pipeline]
    yield Section("What is wrong with the whole pipeline", [_format_finding(row, known) for row in of_pipeline])
    resolved = [_format_resolved(row, known) for row in rows["findings"] if row["resolved_at"] is not None]
    yield Section("What was wrong", resolved)
    yield Section("How it got here", _describe_landings(known))
    yield Section("What was done", map(describe_repair, rows["repairs"]))
    yield Section("Certificate", [describe_certificate(known), describe_certificate_basis(known)])
    yield ""
    yield Text("Where it is", style="bold")
    yield from (f"  {line}" for line in list_places(known))
    if airflow := find_address("airflow"):
        yield f"  page: {airflow.rstrip('/')}/onceover/{known.pipeline}/{known.window}"
    yield ""
    yield Text("What to do next", style="bold")
    for number, step in enumerate(known.steps, 1):
        yield Padding(Text(f"{number}. {step.text}"), (0, 0, 0, 2), expand=False)
        yield f"     {step.command}" if step.command else None


def _format_finding(row: Mapping[str, Any], known: WindowFacts) -> Text:
    text, first = _describe_finding(row, known), row.get("first_seen_at")
    since = f" First seen {format_second(first)}." if first else ""
    return Text.assemble((row["kind"], "bold red"), f": {escape(text.what)}\n{escape(text.how)}{since}")


def _format_resolved(row: Mapping[str, Any], known: WindowFacts) -> Text:
    end = f"Resolved {format_second(row['resolved_at'])}: {row['resolution'] or 'no longer found'}."
    seen = f", seen {format_second(row['first_seen_at'])}. {_describe_finding(row, known).how} {end}"
    return Text.assemble((row["kind"], "bold"), escape(seen))


def _describe_finding(row: Mapping[str, Any], known: WindowFacts) -> FindingText:
    return describe_finding(row["kind"], row["evidence"], known.rows["landings"])


def _describe_landings(known: WindowFacts) -> Iterator[Part]:
    rows = known.rows["landings"]
    if not rows:
        yield NO_LANDING
        return
    shown = select_landings(rows, known.findings)
    text = f"{pluralize(len(rows), 'landing')}, {pluralize(sum(row['records'] for row in rows), 'line')} in all."
    if len(shown) < len(rows):
        text += f" {len(shown)} are shown, those that findings name first; --json lists all."
    yield text
    yield Table(
        shown,
        ("landing", lambda row: str(row["landing_id"])), ("batch", lambda row: str(row["batch_id"])),
        ("bytes", lambda row: f"[{row['byte_start']}, {row['byte_end']})"), ">records",
        ("landed at", lambda row: row["landed_at"] and format_minute(row["landed_at"])),
        ("offset ranges", _format_origin),
    )  # fmt: skip


def _format_origin(row: Mapping[str, Any]) -> str:
    ranges = " ".join(map(str, parse_offset_ranges(row["offset_ranges"])))
    return describe_marks(row) + (describe_origin(row) or ranges)
