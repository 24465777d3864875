"""`onceover quarantine`: records that have no place in any window, by day and reason, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.codes import epilog
from onceover.cli.output import Occasionally, as_json, safe, say, table
from onceover.cli.sentences import counted
from onceover.errors import UsageError
from onceover.line import Line, encode_id

if TYPE_CHECKING:
    from onceover.window_files import WindowFiles

_MOST_SHOWN = 200  # characters of a key or value, for people


class Action(StrEnum):
    """What to do with the quarantine."""

    LIST = "list"
    SHOW = "show"


Do = Annotated[Action, typer.Argument(metavar="ACTION", help="list or show.")]
Day = Annotated[
    str | None, typer.Option("--day", metavar="DATE", help="The day a record was put there, UTC; else all.")
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="With show: only records whose reason contains this.")
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="With show: so many records at most.")]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover quarantine flights list",
            "onceover quarantine flights list --day 2026-03-01 --json",
            'onceover quarantine flights show --reason "beyond horizon" --limit 5',
        )
    )(quarantine)


def quarantine(
    pipeline: PipelineName,
    action: Do,
    day: Day = None,
    reason: Reason = None,
    limit: Limit = 20,
    json: AsJson = False,
) -> None:
    """List what is in quarantine by day and reason, or show some of its records.

    A record is there because it cannot be parsed, or because the contract has no window for it. It is accounted for, no
    aggregate counts it, and nothing of it is lost: key, headers and value stand in ROOT/PIPELINE/quarantine/DATE.log as
    they came. A record counts once, however often its batch was read again.
    """
    from onceover.endpoints import address
    from onceover.pipelines import find
    from onceover.window_files import Layout, WindowFiles

    known = find(pipeline)
    if reason is not None and action is not Action.SHOW:
        raise UsageError(f"{action} takes no --reason; that is for show")
    files = WindowFiles(address("webhdfs"), Layout(known.storage.raw_root, known.name))
    days = _days(files, day)
    if action is Action.LIST:
        _list(known.name, files, days, json)
    else:
        _show(files, days, reason, limit, json)


def _days(files: WindowFiles, day: str | None) -> Mapping[date, int]:
    found = files.quarantine_days()
    if day is None:
        return found
    try:
        chosen = date.fromisoformat(day)
    except ValueError:
        raise UsageError(f"--day takes a date like 2026-03-01, not {day[:40]!r}") from None
    return {chosen: found[chosen]} if chosen in found else {}


def _list(name: str, files: WindowFiles, days: Mapping[date, int], json: bool) -> None:
    from onceover.quarantine import by_reason

    told = Occasionally()
    found = list(by_reason(files, days, lambda day, n, of: told(f"{day}: read {n / 1e6:,.0f} of {of / 1e6:,.0f} MB")))
    if json:
        as_json(
            {
                "pipeline": name,
                "records": sum(each.records for each in found),
                "days": [
                    {"day": each.day, "bytes": each.bytes, "corrupt_lines": each.corrupt_lines, "reasons": each.reasons}
                    for each in found
                ],
            }
        )
        return
    if not found:
        say("nothing is in quarantine")
        return
    rows = [(str(each.day), number, reason) for each in found for reason, number in each.reasons.items()]
    say(table(["day", ">records", "reason"], rows))
    torn = sum(each.corrupt_lines for each in found)
    say(
        f"{counted(sum(each.records for each in found), 'record')} in quarantine"
        + (f", and {counted(torn, 'torn line')} of writers that died" if torn else "")
        + f"; `onceover quarantine {name} show --day {found[-1].day}` shows what they hold"
    )


def _show(files: WindowFiles, days: Mapping[date, int], reason: str | None, limit: int, json: bool) -> None:
    from onceover.quarantine import first_records

    def wanted(line: Line) -> bool:
        return reason is None or reason in (line.reason or "")

    shown = [_plain(line) for line in first_records(files, days, wanted, limit)]
    if json:
        as_json(shown)
        return
    if not shown:
        say("nothing in quarantine matches")
    for record in shown:
        say(f"{record['id']}  {record['reason']}")
        for part in ("key", "headers", "value"):
            if record[part]:
                say(f"  {part:<8}{_short(str(record[part]))}")


def _plain(line: Line) -> dict[str, Any]:
    """The record with bytes as text, what is not UTF-8 or not printable written out."""
    record = line.record
    return {
        "id": encode_id(record.source, record.offset).decode(),
        "reason": line.reason,
        "kafka_timestamp": record.kafka_timestamp,
        "key": _text(record.key),
        "headers": [[_text(name), _text(value)] for name, value in record.headers],
        "value": _text(record.value),
    }


def _text(data: bytes | str | None) -> str | None:
    if data is None:
        return None
    return safe(data if isinstance(data, str) else data.decode("utf-8", "backslashreplace"))


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} ... ({len(text):,} characters; --json has all)"
