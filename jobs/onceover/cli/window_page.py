"""The page of `onceover explain` on a terminal, section by section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.padding import Padding
from rich.text import Text

from onceover.cli.output import STYLES, Part, Section, Table
from onceover.config.endpoints import find_address
from onceover.explain.finding_text import parse_offset_ranges
from onceover.explain.window_text import NO_LANDING
from onceover.model.window import format_minute, format_moment, format_second
from onceover.model.wording import pluralize
from onceover.printable import escape


def describe(known: Mapping[str, Any]) -> Iterator[Part]:
    """Yield a window's state, findings, landings, repairs, certificate, places and next steps, of what the page has."""
    state, ledger = known["state_text"], known["ledger"]
    title = f"{known['pipeline']}, window {known['window'].shown} to {format_moment(known['end'])}: "
    yield Text.assemble((title, "bold"), (state, STYLES.get(state, "bold")))
    yield from (known["sentence"], known["verdict"])
    yield from (f"It is {taken.describe_holder()}." for taken in ledger["taken"])
    yield from known["notes"]
    yield Section("What is lost for ever", _list_texts(ledger, "losses"))
    nothing = "Nothing." if known["judged_now"] else "Nothing recorded in the ledger."
    yield Section("What is wrong", list(map(_format_finding, known["findings"])) or [nothing])
    yield Section("What is wrong with the whole pipeline", map(_format_finding, known["findings_of_pipeline"]))
    yield Section("What was wrong", map(_format_resolved, ledger["findings"]))
    yield Section("How it got here", _describe_landings(known["counts"]["lines"], ledger))
    yield Section("What was done", _list_texts(ledger, "repairs"))
    yield Section("Certificate", [known["certificate_text"], known["certificate_rests_on_text"]])
    yield ""
    yield Text("Where it is", style="bold")
    yield from (f"  {place}" for place in known["places"])
    if airflow := find_address("airflow"):
        yield f"  page: {airflow.rstrip('/')}/onceover/{known['pipeline']}/{known['window']}"
    yield ""
    yield Text("What to do next", style="bold")
    for number, step in enumerate(known["next_steps"], 1):
        yield Padding(Text(f"{number}. {step['text']}"), (0, 0, 0, 2), expand=False)
        yield f"     {step['command']}" if step["command"] else None


def _list_texts(ledger: Mapping[str, Any], name: str) -> Iterator[Part]:
    yield from (row["text"] for row in ledger[name])
    if left := ledger["left_out"][name]:
        yield f"And {left:,} earlier {name}; --json lists all."


def _format_finding(row: Mapping[str, Any]) -> Text:
    since = f" First seen {format_second(row['first_seen_at'])}." if row.get("first_seen_at") else ""
    return Text.assemble((row["kind"], "bold red"), f": {escape(row['what'])}\n{escape(row['how'])}{since}")


def _format_resolved(row: Mapping[str, Any]) -> Text:
    end = f"Resolved {format_second(row['resolved_at'])}: {row['resolution'] or 'no longer found'}."
    seen = f", seen {format_second(row['first_seen_at'])}. {row['how']} {end}"
    return Text.assemble((row["kind"], "bold"), escape(seen))


def _describe_landings(lines: int, ledger: Mapping[str, Any]) -> Iterator[Part]:
    shown, left = ledger["landings"], ledger["left_out"]["landings"]
    hint = f" {len(shown)} are shown, those that findings name first; --json lists all." if left else ""
    yield (
        f"{pluralize(len(shown) + left, 'landing')}, {pluralize(lines, 'line')} in all.{hint}" if shown else NO_LANDING
    )
    yield Table(
        shown,
        ("landing", lambda row: str(row["landing_id"])), ("batch", lambda row: str(row["batch_id"])),
        ("bytes", lambda row: f"[{row['byte_start']}, {row['byte_end']})"), ">records",
        ("landed at", lambda row: row["landed_at"] and format_minute(row["landed_at"])),
        ("offset ranges", _format_origin),
    )  # fmt: skip


def _format_origin(row: Mapping[str, Any]) -> str:
    ranges = "" if row["released"] else " ".join(map(str, parse_offset_ranges(row["offset_ranges"])))
    return f"{row['text']}{ranges}"
