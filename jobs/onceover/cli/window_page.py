"""How `onceover explain` draws on a terminal what is known of a window, section by section."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from onceover.cli.output import STYLES, draw_table, safe, say
from onceover.explain.finding_text import (
    FindingText,
    describe_finding,
    format_records,
    parse_offset_ranges,
    pluralize,
)
from onceover.explain.gather import WindowFacts
from onceover.explain.view import (
    describe_certificate,
    describe_loss,
    describe_marks,
    describe_release,
    describe_repair,
    describe_verdict,
    format_second,
    list_places,
    select_landings,
)
from onceover.model.window import format_moment


def show(known: WindowFacts) -> None:
    """Print all of it: state, what is wrong, what raw holds, what was done, what is next."""
    state, end = known.state, format_moment(known.window.end)
    say(
        Text.assemble(
            (f"{known.pipeline}, window {known.window} to {end}: ", "bold"), (state, STYLES.get(state, "bold"))
        )
    )
    window = known.rows["window"]
    say(f"{describe_verdict(known)} The aggregates count {format_records(window['records'])}.")
    if window["blocked_why"]:
        say(f"Blocked because: {safe(window['blocked_why'])}")
    if known.judged is None and state != "open":
        say(Text(f"Not judged now, what follows is the ledger's: {safe(str(known.not_judged))}", style="yellow"))
    _section("What is lost for ever", [Text(safe(describe_loss(row))) for row in known.rows["losses"]])
    _section("What is wrong", _findings(known))
    _section("What is wrong with the whole pipeline", _of_pipeline(known))
    _section("What was wrong", _ended(known))
    _section("How it got here", _landings(known))
    _section("What was done", [Text(safe(describe_repair(row))) for row in known.rows["repairs"]])
    _section("Certificate", [Text(safe(describe_certificate(known)))])
    _title("Where it is")
    for line in list_places(known):
        say(f"  {line}", whole=True)
    _title("What to do next")
    for number, step in enumerate(known.steps, 1):
        numbered = Table.grid(padding=(0, 1))
        numbered.add_row(f"  {number}.", step.text)
        say(numbered)
        if step.command:
            say(f"     {step.command}", whole=True)


def _title(text: str) -> None:
    say("", Text(text, style="bold"))


def _section(title: str, parts: Sequence[RenderableType]) -> None:
    if parts:
        _title(title)
        say(Padding(Group(*parts), (0, 0, 0, 2), expand=False))


def _findings(known: WindowFacts) -> list[RenderableType]:
    if not known.findings:
        return [Text("Nothing." if known.judged is not None else "Nothing that the ledger has written down.")]
    parts: list[RenderableType] = []
    for row in known.findings:
        told = describe_finding(row["kind"], row["evidence"], known.rows["landings"])
        first = row.get("first_seen_at")
        parts.append(_finding(row["kind"], told, f" First seen {format_second(first)}." if first else ""))
    return parts


def _of_pipeline(known: WindowFacts) -> list[RenderableType]:
    return [_finding(finding.kind, describe_finding(finding.kind, finding.evidence)) for finding in known.of_pipeline]


def _ended(known: WindowFacts) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for row in known.rows["findings"]:
        if row["resolved_at"] is not None:
            how = describe_finding(row["kind"], row["evidence"], known.rows["landings"]).how
            over = f"Over since {format_second(row['resolved_at'])}: {row['resolution'] or 'no longer there'}."
            parts.append(
                Text.assemble(
                    (row["kind"], "bold"), safe(f", seen {format_second(row['first_seen_at'])}. {how} {over}")
                )
            )
    return parts


def _finding(kind: str, told: FindingText, since: str = "") -> Text:
    return Text.assemble((kind, "bold red"), f": {safe(told.what)}\n{safe(told.how)}{since}")


def _landings(known: WindowFacts) -> list[RenderableType]:
    rows = known.rows["landings"]
    if not rows:
        return [Text("No batch has landed anything in it.")]
    shown = select_landings(rows, known.findings)
    text = f"{pluralize(len(rows), 'landing')}, {pluralize(sum(row['records'] for row in rows), 'line')} in all."
    if len(shown) < len(rows):
        text += f" Below are {len(shown)}, those that findings name first; --json has all."
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
                + (describe_release(row) or " ".join(map(str, parse_offset_ranges(row["offset_ranges"])))),
            )
            for row in shown
        ),
    )
    return [Text(text), drawn]
