"""`onceover quarantine`: records that have no place in any window, by day and reason, what they hold, and their release
once the contract has a place for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onceover.cli.arguments import AsJson, PipelineName
from onceover.cli.commands.release import release
from onceover.cli.exit_codes import TRY_LATER, epilog
from onceover.cli.output import Occasionally, as_json, safe, say, table
from onceover.errors import UsageError
from onceover.explain.finding_text import counted
from onceover.model.line import Line, encode_id

if TYPE_CHECKING:
    from onceover.quarantine.reader import Released
    from onceover.raw.window_files import WindowFiles

_MOST_SHOWN = 200  # characters of a key or value, for people


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
    from onceover.config.endpoints import address
    from onceover.config.pipelines import find
    from onceover.raw.window_files import Layout, WindowFiles

    known = find(pipeline)
    if reason is not None and action is Action.LIST:
        raise UsageError("list takes no --reason; that is for show and release")
    if limit is not None and action is not Action.SHOW:
        raise UsageError(f"{action} takes no --limit; that is for show")
    if action is Action.RELEASE:
        release(known.name, _date(day), reason, why, dry_run, json)
        return
    if dry_run or why is not None:
        raise UsageError(f"{action} takes no --dry-run and no --why; those are for release")
    files = WindowFiles(address("webhdfs"), Layout(known.storage.raw_root, known.name))
    days = _days(files, day)
    gone = _released(known.name)
    if action is Action.LIST:
        _list(known.name, files, days, gone, json)
    else:
        _show(files, days, gone, reason, limit or 20, json)


def _days(files: WindowFiles, day: str | None) -> Mapping[date, int]:
    chosen = _date(day)
    return {each: size for each, size in files.quarantine_days().items() if chosen in (None, each)}


def _date(day: str | None) -> date | None:
    if day is None:
        return None
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise UsageError(f"--day takes a date like 2026-03-01, not {day[:40]!r}") from None


def _released(name: str) -> Released:
    from onceover.config.endpoints import address
    from onceover.ledger.database import connect, require_current
    from onceover.ledger.releases import releases_of
    from onceover.quarantine.reader import Released

    with connect(address("postgres"), f"onceover quarantine {name}") as connection:
        require_current(connection)
        return Released(piece for one in releases_of(connection, name) for piece in one.ranges)


def _list(name: str, files: WindowFiles, days: Mapping[date, int], gone: Released, json: bool) -> None:
    from onceover.quarantine.reader import by_reason

    told = Occasionally()
    found = list(
        by_reason(files, days, gone, lambda day, n, of: told(f"{day}: read {n / 1e6:,.0f} of {of / 1e6:,.0f} MB"))
    )
    if json:
        as_json(
            {
                "pipeline": name,
                "records": sum(each.records for each in found),
                "days": [
                    {
                        "day": each.day,
                        "bytes": each.bytes,
                        "corrupt_lines": each.corrupt_lines,
                        "reasons": each.reasons,
                        "released": each.released,
                    }
                    for each in found
                ],
            }
        )
        return
    released, torn = sum(each.released for each in found), sum(each.corrupt_lines for each in found)
    apart = f"; {counted(released, 'record')} that were there are released" if released else ""
    if not any(each.reasons or each.corrupt_lines for each in found):
        say(f"nothing is in quarantine{apart}")
        return
    rows = [(str(each.day), number, reason) for each in found for reason, number in each.reasons.items()]
    say(table(["day", ">records", "reason"], rows))
    say(
        f"{counted(sum(each.records for each in found), 'record')} in quarantine"
        + (f", and {counted(torn, 'torn line')} of writers that died" if torn else "")
        + apart
        + f"; `onceover quarantine {name} show --day {found[-1].day}` shows what they hold"
    )


def _show(
    files: WindowFiles, days: Mapping[date, int], gone: Released, reason: str | None, limit: int, json: bool
) -> None:
    from onceover.quarantine.reader import first_records

    def wanted(line: Line) -> bool:
        return reason is None or reason in (line.reason or "")

    shown = [_plain(line) for line in first_records(files, days, gone, wanted, limit)]
    if json:
        as_json(shown)
        return
    if not shown:
        say("nothing in quarantine matches")
    for record in shown:
        say(f"{record['id']}  {record['reason']}")
        headers = ", ".join(f"{name}={'null' if value is None else value}" for name, value in record["headers"])
        for part, text in (("key", record["key"]), ("headers", headers or None), ("value", record["value"])):
            if text is not None:
                say(f"  {part:<8}{_short(text) or '(empty)'}")


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
