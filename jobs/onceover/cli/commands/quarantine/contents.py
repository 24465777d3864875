"""`onceover quarantine PIPELINE list` and `show`: records by day and reason, and their contents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from onceover.cli.output import Occasionally, draw_table, print_json, say
from onceover.lines.reference import Line
from onceover.model.record import encode_id
from onceover.model.wording import pluralize
from onceover.printable import escape
from onceover.quarantine.reader import QuarantineFiles, ReleasedIds, count_by_reason, read_first_records

_MOST_SHOWN = 200  # characters of a key or value, for people


def list_days(name: str, files: QuarantineFiles, days: Mapping[date, int], released: ReleasedIds, json: bool) -> None:
    """Print each day's records by reason."""
    progress = Occasionally()
    summaries = list(
        count_by_reason(
            files, days, released, lambda day, n, of: progress(f"{day}: read {n / 1e6:,.0f} of {of / 1e6:,.0f} MB")
        )
    )
    if json:
        print_json(
            {
                "pipeline": name,
                "records": sum(each.records for each in summaries),
                "days": [
                    {
                        "day": each.day,
                        "bytes": each.bytes,
                        "corrupt_lines": each.corrupt_lines,
                        "reasons": each.reasons,
                        "released": each.released,
                    }
                    for each in summaries
                ],
            }
        )
        return
    left, torn = sum(each.released for each in summaries), sum(each.corrupt_lines for each in summaries)
    apart = f"; {pluralize(left, 'record')} released earlier" if left else ""
    if not any(each.reasons or each.corrupt_lines for each in summaries):
        say(f"nothing is in quarantine{apart}")
        return
    rows = [(str(each.day), number, reason) for each in summaries for reason, number in each.reasons.items()]
    say(draw_table(["day", ">records", "reason"], rows))
    say(
        f"{pluralize(sum(each.records for each in summaries), 'record')} in quarantine"
        + (f", and {pluralize(torn, 'torn line')} of writers that died" if torn else "")
        + apart
        + f"; `onceover quarantine {name} show --day {summaries[-1].day}` shows their contents"
    )


def show_records(
    files: QuarantineFiles, days: Mapping[date, int], released: ReleasedIds, reason: str | None, limit: int, json: bool
) -> None:
    """Print the first records whose reason contains this text."""

    def matches(line: Line) -> bool:
        return reason is None or reason in (line.reason or "")

    shown = [_to_plain(line) for line in read_first_records(files, days, released, matches, limit)]
    if json:
        print_json(shown)
        return
    if not shown:
        say("nothing in quarantine matches")
    for record in shown:
        say(f"{record['id']}  {escape(record['reason'] or '')}")
        headers = ", ".join(f"{name}={'null' if value is None else value}" for name, value in record["headers"])
        for part, text in (("key", record["key"]), ("headers", headers or None), ("value", record["value"])):
            if text is not None:
                say(f"  {part:<8}{_shorten(text) or '(empty)'}")


def _to_plain(line: Line) -> dict[str, Any]:
    """Return the record with bytes as text; bytes that are not UTF-8 or not printable are escaped."""
    record = line.record
    return {
        "id": encode_id(record.source, record.offset).decode(),
        "reason": line.reason,
        "kafka_timestamp": record.kafka_timestamp,
        "key": _decode(record.key),
        "headers": [[_decode(name), _decode(value)] for name, value in record.headers],
        "value": _decode(record.value),
    }


def _decode(data: bytes | str | None) -> str | None:
    if data is None:
        return None
    return escape(data if isinstance(data, str) else data.decode("utf-8", "backslashreplace"))


def _shorten(text: str) -> str:
    return (
        text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} ... ({len(text):,} characters; --json prints all)"
    )
