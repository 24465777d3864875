"""The report of `onceover pipelines check --sample`: windows, reasons for quarantine, and the newest records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onceover.cli.output import draw_table, say
from onceover.model.window import format_moment, from_ms
from onceover.model.wording import pluralize
from onceover.printable import escape
from onceover.spark.sample import FAR_MS, Times, TopicSample

_MOST_WINDOWS = 10
_MOST_LETTERS = 40
"""Of a key or a measure in the table; `--json` prints the whole."""


def list_as_json(sample: TopicSample) -> dict[str, Any]:
    """Return the sample as `--json` prints it."""
    return {
        "records": sample.records,
        "quarantined": sample.quarantined,
        "far": sample.far,
        "skipped": sample.skipped,
        "windows": sample.windows,
        "reasons": [
            {
                **{"reason": each.reason, "records": each.records, "error": each.error, "remedy": each.remedy},
                "example": _list_times(each.example) if each.example else None,
            }
            for each in sample.reasons
        ],
        "newest": [{**_name_columns(row), **_list_times(_get_times(row))} for row in sample.newest],
    }


def show_sample(sample: TopicSample, topic: str) -> None:
    """Print what the contract makes of the topic's last records."""
    if not sample.records:
        say(f"topic {escape(topic)} holds no record")
        return
    if sample.windows:
        shown = list(sample.windows.items())[-_MOST_WINDOWS:]
        say(draw_table(["window", ">records"], shown))
        if len(shown) < len(sample.windows):
            say(f"and {pluralize(len(sample.windows) - len(shown), 'earlier window')}")
    if sample.newest:
        rows = [{**_name_columns(row), **_show_times(_get_times(row))} for row in sample.newest]
        say(draw_table(list(rows[0]), ([_shorten(value) for value in row.values()] for row in rows)))
    if sample.reasons:
        say(draw_table(["to quarantine because", ">records"], ((each.reason, each.records) for each in sample.reasons)))
    for each in sample.reasons:
        for more in (each.error, each.remedy, each.example and _describe(each.example)):
            if more:
                say(f"{escape(each.reason)}: {escape(more)}", whole=True)
    fit = sample.records - sample.quarantined
    say(
        f"of the last {pluralize(sample.records, 'record')}, {fit:,} fit {pluralize(len(sample.windows), 'window')}, "
        f"{sample.quarantined:,} go to quarantine"
    )
    for measure, records in sample.skipped.items():
        if records:
            say(f"measure {measure} skips {pluralize(records, 'record')} that fit: its SQL has no exact result")
    if sample.far:
        say(
            f"{pluralize(sample.far, 'record')} that fit: event time more than {FAR_MS // 60_000} min from Kafka's; "
            "unless the topic is a replay, check pattern, unit and time zone of event_time",
            whole=True,
        )


def _shorten(value: object) -> object:
    if isinstance(value, str) and len(value) > _MOST_LETTERS:
        return f"{value[:_MOST_LETTERS]}…"
    return value


def _name_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offset, and keys and measures by the names that the TOML gives them: none of theirs has a space."""
    given = {name[2:]: value for name, value in row.items() if name.startswith(("k_", "m_"))}
    return {"Kafka partition": row["kafka_partition"], "Kafka offset": row["offset"], **given}


def _get_times(row: Mapping[str, Any]) -> Times:
    return Times(row["event_ms"], row["kafka_timestamp"])


def _list_times(times: Times) -> dict[str, Any]:
    event, kafka = _format_times(times)
    return {"event time": event, "Kafka time": kafka, "difference in ms": times.difference_ms, "is far": times.is_far}


def _show_times(times: Times) -> dict[str, Any]:
    event, kafka = _format_times(times)
    return {"event time": event, "Kafka time": kafka, "difference": _format_difference(times)}


def _describe(times: Times) -> str:
    event, kafka = _format_times(times)
    return f"event time {event}, Kafka's {kafka}: {_format_difference(times)}"


def _format_times(times: Times) -> tuple[str, str | None]:
    kafka = format_moment(from_ms(times.kafka_ms)) if times.kafka_ms >= 0 else None
    return format_moment(from_ms(times.event_ms)), kafka


def _format_difference(times: Times) -> str | None:
    """Return the difference in its largest two units, as in `12 h 3 min before, far`."""
    if times.difference_ms is None:
        return None
    seconds = abs(times.difference_ms) // 1000
    parts = [(seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    first = next((at for at, (number, _) in enumerate(parts) if number), len(parts) - 1)
    text = " ".join(f"{number:,} {unit}" for number, unit in parts[first : first + 2])
    return f"{text} {'before' if times.difference_ms < 0 else 'after'}{', far' if times.is_far else ''}"
