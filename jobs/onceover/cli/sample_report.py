"""The report of `onceover pipelines check --sample`: windows, reasons for quarantine, and the newest records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from onceover.cli.output import Part, Table
from onceover.model.window import format_moment, from_ms
from onceover.model.wording import format_duration, pluralize
from onceover.spark.sample import FAR_MS, Times, TopicSample

_MAX_WINDOWS = 10
_MAX_LETTERS = 40
"""Of a key or a measure in the table; `--json` prints the whole."""


def list_as_json(sample: TopicSample) -> dict[str, Any]:
    """Return the sample as `--json` prints it."""
    return {
        **asdict(sample),
        "quarantined": sample.quarantined,
        "reasons": [{**asdict(each), "example": each.example and _list_times(each.example)} for each in sample.reasons],
        "newest": list(map(_list_record, sample.newest)),
    }


def describe_sample(sample: TopicSample, topic: str) -> Iterator[Part]:
    """Yield what the contract makes of the topic's last records."""
    if not sample.records:
        yield f"topic {topic} holds no record"
        return
    windows = list(sample.windows.items())
    yield Table(windows[-_MAX_WINDOWS:], ("window", 0), (">records", 1))
    if earlier := windows[:-_MAX_WINDOWS]:
        yield f"and {pluralize(len(earlier), 'earlier window')}"
    newest = [{**_list_record(row), "difference": _format_difference(_get_times(row))} for row in sample.newest]
    names = [name for name in (newest[0] if newest else ()) if name not in ("difference in ms", "is far")]
    yield Table([{name: _shorten(row[name]) for name in names} for row in newest], *((name, name) for name in names))
    yield Table(sample.reasons, ("to quarantine because", "reason"), ">records")
    for each in sample.reasons:
        for more in (each.error, each.remedy, each.example and _describe(each.example)):
            if more:
                yield f"{each.reason}: {more}"
    fit = sample.records - sample.quarantined
    yield (
        f"of the last {pluralize(sample.records, 'record')}, {fit:,} fit {pluralize(len(sample.windows), 'window')}, "
        f"{sample.quarantined:,} go to quarantine"
    )
    for measure, records in sample.skipped.items():
        if records:
            yield f"measure {measure} skips {pluralize(records, 'record')} that fit: its SQL has no exact result"
    if sample.far:
        yield (
            f"{pluralize(sample.far, 'record')} that fit: event time more than {FAR_MS // 60_000} min from Kafka's; "
            "unless the topic is a replay, check pattern, unit and time zone of event_time"
        )


def _shorten(value: object) -> object:
    if isinstance(value, str) and len(value) > _MAX_LETTERS:
        return f"{value[:_MAX_LETTERS]}…"
    return value


def _list_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offset, keys and measures by the names that the TOML gives them, none of which has a space, and the
    times."""
    given = {name[2:]: value for name, value in row.items() if name.startswith(("k_", "m_"))}
    places = {"Kafka partition": row["kafka_partition"], "Kafka offset": row["offset"]}
    return {**places, **given, **_list_times(_get_times(row))}


def _get_times(row: Mapping[str, Any]) -> Times:
    return Times(row["event_ms"], row["kafka_timestamp"])


def _list_times(times: Times) -> dict[str, Any]:
    return {
        "event time": format_moment(from_ms(times.event_ms)),
        "Kafka time": format_moment(from_ms(times.kafka_ms)) if times.kafka_ms >= 0 else None,
        "difference in ms": times.difference_ms,
        "is far": times.is_far,
    }


def _describe(times: Times) -> str:
    listed = _list_times(times)
    return f"event time {listed['event time']}, Kafka's {listed['Kafka time']}: {_format_difference(times)}"


def _format_difference(times: Times) -> str | None:
    """Return the difference as in `12 h 3 min before, far`."""
    if times.difference_ms is None:
        return None
    text = format_duration(abs(times.difference_ms) / 1000)
    return f"{text} {'before' if times.difference_ms < 0 else 'after'}{', far' if times.is_far else ''}"
