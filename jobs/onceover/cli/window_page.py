"""The page of `onceover explain` on a terminal, section by section."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from onceover.cli.output import STYLES, draw_table, say
from onceover.config.endpoints import find_address
from onceover.explain.finding_text import FindingText, describe_finding, parse_offset_ranges
from onceover.explain.gather import WindowFacts
from onceover.explain.view import (
    describe_certificate,
    describe_certificate_basis,
    describe_loss,
    describe_marks,
    describe_origin,
    describe_repair,
    describe_verdict,
    format_second,
    list_places,
    select_landings,
)
from onceover.model.window import format_moment
from onceover.model.wording import format_records, pluralize
from onceover.printable import escape

_MOST_LOSSES = 20


def show(known: WindowFacts) -> None:
    """Print a window's state, findings, landings, repairs, certificate, places and next steps."""
    state, end = known.state, format_moment(known.window.end)
    say(
        Text.assemble(
            (f"{known.pipeline}, window {known.window} to {end}: ", "bold"), (state, STYLES.get(state, "bold"))
        )
    )
    window = known.rows["window"]
    say(f"{describe_verdict(known)} The aggregates count {format_records(window['records'])}.")
    for taken in known.rows["taken"]:
        say(f"It is {escape(taken.describe_holder())}.")
    if window["blocked_why"]:
        say(f"Blocked because: {escape(window['blocked_why'])}")
    if known.judged is None and state != "open":
        say(Text(f"Not judged now; the ledger's last findings follow: {escape(str(known.not_judged))}", style="yellow"))
    lost = [Text(escape(describe_loss(row))) for row in known.rows["losses"]]
    more = len(lost) - _MOST_LOSSES
    _print_section(
        "What is lost for ever", [*lost[:_MOST_LOSSES], *([Text(f"And {more:,} more ranges.")] if more > 0 else [])]
    )
    _print_section("What is wrong", _draw_findings(known))
    _print_section("What is wrong with the whole pipeline", _draw_pipeline_findings(known))
    _print_section("What was wrong", _draw_resolved(known))
    _print_section("How it got here", _draw_landings(known))
    _print_section("What was done", [Text(escape(describe_repair(row))) for row in known.rows["repairs"]])
    certificate = [describe_certificate(known), describe_certificate_basis(known)]
    _print_section("Certificate", [Text(escape(text)) for text in certificate if text])
    _print_title("Where it is")
    for line in list_places(known):
        say(f"  {line}", whole=True)
    if airflow := find_address("airflow"):
        say(f"  page: {airflow.rstrip('/')}/onceover/{known.pipeline}/{known.window}", whole=True)
    _print_title("What to do next")
    for number, step in enumerate(known.steps, 1):
        numbered = Table.grid(padding=(0, 1))
        numbered.add_row(f"  {number}.", step.text)
        say(numbered)
        if step.command:
            say(f"     {step.command}", whole=True)


def _print_title(text: str) -> None:
    say("", Text(text, style="bold"))


def _print_section(title: str, parts: Sequence[RenderableType]) -> None:
    if parts:
        _print_title(title)
        say(Padding(Group(*parts), (0, 0, 0, 2), expand=False))


def _draw_findings(known: WindowFacts) -> list[RenderableType]:
    if not known.findings:
        return [Text("Nothing." if known.judged is not None else "Nothing recorded in the ledger.")]
    parts: list[RenderableType] = []
    for row in known.findings:
        text = describe_finding(row["kind"], row["evidence"], known.rows["landings"])
        first = row.get("first_seen_at")
        parts.append(_draw_finding(row["kind"], text, f" First seen {format_second(first)}." if first else ""))
    return parts


def _draw_pipeline_findings(known: WindowFacts) -> list[RenderableType]:
    return [
        _draw_finding(finding.kind, describe_finding(finding.kind, finding.evidence)) for finding in known.of_pipeline
    ]


def _draw_resolved(known: WindowFacts) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for row in known.rows["findings"]:
        if row["resolved_at"] is not None:
            how = describe_finding(row["kind"], row["evidence"], known.rows["landings"]).how
            end = f"Resolved {format_second(row['resolved_at'])}: {row['resolution'] or 'no longer found'}."
            parts.append(
                Text.assemble(
                    (row["kind"], "bold"), escape(f", seen {format_second(row['first_seen_at'])}. {how} {end}")
                )
            )
    return parts


def _draw_finding(kind: str, text: FindingText, since: str = "") -> Text:
    return Text.assemble((kind, "bold red"), f": {escape(text.what)}\n{escape(text.how)}{since}")


def _draw_landings(known: WindowFacts) -> list[RenderableType]:
    rows = known.rows["landings"]
    if not rows:
        return [Text("No batch has landed records in this window.")]
    shown = select_landings(rows, known.findings)
    text = f"{pluralize(len(rows), 'landing')}, {pluralize(sum(row['records'] for row in rows), 'line')} in all."
    if len(shown) < len(rows):
        text += f" {len(shown)} are shown, those that findings name first; --json lists all."
    drawn = draw_table(
        ["landing", "batch", "bytes", ">records", "landed at", "offset ranges"],
        (
            (
                str(row["landing_id"]),
                str(row["batch_id"]),
                f"[{row['byte_start']}, {row['byte_end']})",
                row["records"],
                row["landed_at"].replace(second=0, microsecond=0) if row["landed_at"] else None,
                describe_marks(row)
                + (describe_origin(row) or " ".join(map(str, parse_offset_ranges(row["offset_ranges"])))),
            )
            for row in shown
        ),
    )
    return [Text(text), drawn]
