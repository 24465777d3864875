"""`onceover quarantine PIPELINE list` and `show`: records by day and reason, and their contents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from rich.text import Text

from onceover.cli.output import Answer, Occasionally, Table
from onceover.lines.line_format import Line
from onceover.model.offsets import OffsetSet
from onceover.model.record import encode_id
from onceover.model.wording import pluralize
from onceover.printable import escape
from onceover.quarantine.reader import QuarantineFiles, count_by_reason, read_first_records

_MAX_SHOWN = 200  # characters of a key or value, for people


def list_days(name: str, files: QuarantineFiles, days: Mapping[date, int], released: OffsetSet) -> Answer:
    """Return each day's records by reason."""
    progress = Occasionally()
    summaries = list(
        count_by_reason(
            files, days, released, lambda day, n, of: progress(f"{day}: read {n / 1e6:,.0f} of {of / 1e6:,.0f} MB")
        )
    )
    records = sum(each.records for each in summaries)
    left, torn = sum(each.released for each in summaries), sum(each.corrupt_lines for each in summaries)
    apart = f"; {pluralize(left, 'record')} released earlier" if left else ""
    rows = [(each.day, number, reason) for each in summaries for reason, number in each.reasons.items()]
    said = f"nothing is in quarantine{apart}"
    if records or torn:
        lines = f", and {pluralize(torn, 'torn line')} of writers that died" if torn else ""
        where = f"`onceover quarantine {name} show --day {summaries[-1].day}` shows their contents"
        said = f"{pluralize(records, 'record')} in quarantine{lines}{apart}; {where}"
    return Answer(
        {"pipeline": name, "records": records, "days": summaries},
        [Table(rows, ("day", 0), (">records", 1), ("reason", 2), most=None), said],
    )


def show_records(
    files: QuarantineFiles, days: Mapping[date, int], released: OffsetSet, reason: str | None, limit: int
) -> Answer:
    """Return the first records whose reason contains this text."""

    def matches(line: Line) -> bool:
        return reason is None or reason in (line.reason or "")

    shown = [_to_plain(line) for line in read_first_records(files, days, released, matches, limit)]
    return Answer(shown, map(_format_record, shown) if shown else ["nothing in quarantine matches"])


def _format_record(record: Mapping[str, Any]) -> Text:
    """Return the record's ID and reason, and a line for each of its parts."""
    headers = ", ".join(f"{name}={'null' if value is None else value}" for name, value in record["headers"])
    parts = (("key", record["key"]), ("headers", headers or None), ("value", record["value"]))
    lines = [f"  {part:<8}{_shorten(text) or '(empty)'}" for part, text in parts if text is not None]
    return Text("\n".join([f"{record['id']}  {escape(record['reason'] or '')}", *lines]))


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
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]} ... ({len(text):,} characters; --json prints all)"
