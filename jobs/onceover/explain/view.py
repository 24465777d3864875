"""How `onceover explain` tells it on a terminal: state, what is wrong, what raw holds, what was done, what is next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from onceover.cli.output import STYLES, safe, say, table
from onceover.explain.finding_text import Told, counted, offset_ranges, records, tell
from onceover.explain.gather import Known
from onceover.model.finding import Kind
from onceover.model.window import written

_MOST_LANDINGS = 20

_VERDICTS = {
    "open": "It is open: records may still come.",
    "closed": "It has closed and is not certified yet.",
    "failed": "Its aggregates are wrong, or cannot be trusted.",
    "repairing": "A repair holds it right now.",
    "blocked": "Schedules leave it alone until a person asks for it.",
    "certified": "It is certified: each record is counted exactly once.",
    "expired": "Its raw has expired by the pipeline's retention: what came to it since is counted at least once.",
}


def show(known: Known) -> None:
    state, end = known.state, written(known.window.end)
    say(
        Text.assemble(
            (f"{known.pipeline}, window {known.window} to {end}: ", "bold"), (state, STYLES.get(state, "bold"))
        )
    )
    window = known.rows["window"]
    say(f"{_verdict(known)} The aggregates count {records(window['records'])}.")
    if window["blocked_why"]:
        say(f"Blocked because: {safe(window['blocked_why'])}")
    if known.judged is None and state != "open":
        say(Text(f"Not judged now, what follows is the ledger's: {safe(str(known.not_judged))}", style="yellow"))
    _section("What is lost for ever", [Text(safe(_loss(row))) for row in known.rows["losses"]])
    _section("What is wrong", _findings(known))
    _section("What is wrong with the whole pipeline", _of_pipeline(known))
    _section("What was wrong", _ended(known))
    _section("How it got here", _landings(known))
    _section("What was done", [Text(safe(_repair(row))) for row in known.rows["repairs"]])
    _section("Certificate", [Text(safe(_certificate(known)))])
    _title("Where it is")
    for line in _places(known):
        say(f"  {line}", whole=True)
    _title("What to do next")
    for number, step in enumerate(known.steps, 1):
        numbered = Table.grid(padding=(0, 1))
        numbered.add_row(f"  {number}.", step.text)
        say(numbered)
        if step.command:
            say(f"     {step.command}", whole=True)


def _verdict(known: Known) -> str:
    if known.state == "closed" and {row["kind"] for row in known.findings} - {Kind.LATE}:
        return "It has closed, and is wrong; detection has not written that down yet."
    if known.state == "certified" and known.rows["losses"]:
        return (
            "It is certified but for a loss that was accepted: each record that was not lost is counted exactly once."
        )
    return _VERDICTS.get(known.state, "")


def _loss(row: Mapping[str, Any]) -> str:
    (lost,) = offset_ranges([(row["generation"], row["kafka_partition"], row["start_offset"], row["end_offset"])])
    return (
        f"{lost}, {counted(row['end_offset'] - row['start_offset'], 'offset')} that Kafka holds no more; their records "
        f'may have belonged here. Accepted by {row["who"]} at {_at(row["created_at"])} ("{row["why"]}").'
    )


def _title(text: str) -> None:
    say("", Text(text, style="bold"))


def _section(title: str, parts: Sequence[RenderableType]) -> None:
    if parts:
        _title(title)
        say(Padding(Group(*parts), (0, 0, 0, 2), expand=False))


def _findings(known: Known) -> list[RenderableType]:
    if not known.findings:
        return [Text("Nothing." if known.judged is not None else "Nothing that the ledger has written down.")]
    parts: list[RenderableType] = []
    for row in known.findings:
        told = tell(row["kind"], row["evidence"], known.rows["landings"])
        first = row.get("first_seen_at")
        parts.append(_finding(row["kind"], told, f" First seen {_at(first)}." if first else ""))
    return parts


def _of_pipeline(known: Known) -> list[RenderableType]:
    return [_finding(finding.kind, tell(finding.kind, finding.evidence)) for finding in known.of_pipeline]


def _ended(known: Known) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for row in known.rows["findings"]:
        if row["resolved_at"] is not None:
            how = tell(row["kind"], row["evidence"], known.rows["landings"]).how
            over = f"Over since {_at(row['resolved_at'])}: {row['resolution'] or 'no longer there'}."
            parts.append(
                Text.assemble((row["kind"], "bold"), safe(f", seen {_at(row['first_seen_at'])}. {how} {over}"))
            )
    return parts


def _finding(kind: str, told: Told, since: str = "") -> Text:
    return Text.assemble((kind, "bold red"), f": {safe(told.what)}\n{safe(told.how)}{since}")


def _landings(known: Known) -> list[RenderableType]:
    rows = known.rows["landings"]
    if not rows:
        return [Text("No batch has landed anything in it.")]
    shown = _worth_showing(rows, known.findings)
    text = f"{counted(len(rows), 'landing')}, {counted(sum(row['records'] for row in rows), 'line')} in all."
    if len(shown) < len(rows):
        text += f" Below are {len(shown)}, those that findings name first; --json has all."
    drawn = table(
        ["landing", "batch", "bytes", ">records", "landed at", "offset ranges"],
        (
            (
                str(row["landing_id"]),
                str(row["batch_id"]),
                f"[{row['byte_start']}, {row['byte_end']})",
                row["records"],
                row["landed_at"].replace(second=0, microsecond=0) if row["landed_at"] else None,
                _marks(row) + (_released(row) or " ".join(map(str, offset_ranges(row["offset_ranges"])))),
            )
            for row in shown
        ),
    )
    return [Text(text), drawn]


def _marks(row: Mapping[str, Any]) -> str:
    return ("late, " if row["late"] else "") + ("" if row["proved"] else "unproved, ")


def _released(row: Mapping[str, Any]) -> str | None:
    who = row["released"]
    return who and f'released from quarantine by {safe(who["who"])} ("{safe(who["why"])}")'


def _worth_showing(rows: Sequence[Mapping[str, Any]], findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """All, if they fit a page; else those that findings name, then the newest, in their own order."""
    named = {
        number
        for finding in findings
        for key in ("landings", "unproved_landings")
        for number in finding["evidence"].get(key) or ()
    }
    by_worth = sorted(rows, key=lambda row: (row["landing_id"] not in named, -row["landing_id"]))
    return sorted(by_worth[:_MOST_LANDINGS], key=lambda row: row["landing_id"])


def _repair(row: Mapping[str, Any]) -> str:
    state = row["state"]
    text = f'Repair {row["repair_id"]}, asked for by {row["who"]} ("{row["why"]}"): {state}'
    if row["finished_at"] or row["started_at"]:
        text += f" at {_at(row['finished_at'] or row['started_at'])}"
    if row["reason"]:
        text += f", {row['reason']}"
    text += "."
    if row["lines_read"] is not None:
        text += (
            f" It read {counted(row['lines_read'], 'line')}, {counted(row['duplicates'] or 0, 'duplicate')} among them."
        )
    if row["before"] and row["after"]:
        before, after = row["before"], row["after"]
        same = (
            "" if before["revision"] != after["revision"] else "; the rows were right already and stayed as they were"
        )
        text += (
            f" Before: {records(before['control']['records'])} counted (revision {before['revision']}); "
            f"after: {records(after['control']['records'])} (revision {after['revision']}){same}."
        )
    return text


def _certificate(known: Known) -> str:
    rows = known.rows["certificates"]
    if not rows:
        return "None yet."
    last, version = rows[-1], known.rows["window"]["version"]
    if last["revoked_at"]:
        stands = f"revoked at {_at(last['revoked_at'])}: {last['revoked_why']}"
    elif last["version"] != version:
        stands = f"it no longer stands: the window is at version {version} since"
    else:
        stands = "it stands"
    text = (
        f"Certificate {last['certificate_id']} of {_at(last['created_at'])}, from {last['basis']}, by {last['who']} "
        f'("{last["why"]}"): {stands}. It covers {counted(last["records"], "record")} of '
        f"{counted(len(last['landing_set']), 'landing')} in {last['frozen_length']:,} bytes, at version "
        f"{last['version']}, contract {last['contract_version']}, {last['verdict']}."
    )
    earlier = f" {counted(len(rows) - 1, 'earlier one')}." if len(rows) > 1 else ""
    return text + earlier


def _places(known: Known) -> list[str]:
    length = "" if known.file_length is None else f" ({known.file_length:,} bytes)"
    select = f"SELECT * FROM {known.aggregates} WHERE window_start = '{written(known.window.start)}'"
    places = [f"Raw: {known.window_file}{length}", f"Aggregates: {select}"]
    if known.parquet is not None:
        stands_in = "text of before was let go for it" if known.parquet["stands_in"] else "beside the text"
        places.insert(1, f"Parquet: {known.parquet['path']} ({known.parquet['bytes']:,} bytes), {stands_in}")
    return places


def _at(moment: Any) -> str:
    return written(moment.replace(microsecond=0))
