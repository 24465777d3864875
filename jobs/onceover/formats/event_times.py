"""The fields of sampled records that may be their event time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from onceover.formats.shape import Field

_UNITS: Final = {  # units a second: how SQL reads it
    1: "timestamp_seconds({})",
    1_000: "{}",
    1_000_000: "timestamp_micros({})",
    1_000_000_000: "{} div 1000000",
}
_FIRST, _LAST = 946_684_800, 4_102_444_800  # 2000 and 2100, in seconds
_MOST_MISSING: Final = 0.05


@dataclass(frozen=True, slots=True)
class EventTime:
    """SQL that may give the event time, its field, and how far it is from Kafka's time: the median of the records, and
    the most before and after it, in ms."""

    sql: str
    field: Field
    distance_ms: float
    before_ms: int
    after_ms: int


def find_event_times(fields: Sequence[Field], stamps: Sequence[int]) -> list[EventTime]:
    """Return the fields that nearly all records have and that hold a time of this century, the nearest to Kafka's
    first; `stamps` are Kafka's times in ms."""
    found = [each for field in fields for each in _read_times(field, stamps)]
    return sorted(found, key=lambda each: each.distance_ms)


def _read_times(field: Field, stamps: Sequence[int]) -> Iterator[EventTime]:
    if field.type == "TIMESTAMP":
        yield from _compare(field.sql, field, [_read_text(value) for value in field.values], stamps)
    if field.type == "BIGINT":
        for unit, sql in _UNITS.items():
            low, high = _FIRST * unit, _LAST * unit
            times = [v * 1000 // unit if v is not None and low <= v < high else None for v in field.values]
            yield from _compare(sql.format(field.sql), field, times, stamps)
    if field.type == "DOUBLE":
        times = [int(v * 1000) if v is not None and _FIRST <= v < _LAST else None for v in field.values]
        yield from _compare(f"timestamp_seconds(CAST({field.sql} AS DECIMAL(18, 6)))", field, times, stamps)


def _compare(sql: str, field: Field, times: Sequence[int | None], stamps: Sequence[int]) -> Iterator[EventTime]:
    pairs = [(time, stamp) for time, stamp in zip(times, stamps, strict=True) if time is not None]
    if pairs and len(pairs) >= (1 - _MOST_MISSING) * len(times):
        before = [stamp - time for time, stamp in pairs]
        yield EventTime(sql, field, statistics.median(map(abs, before)), max(0, *before), max(0, *(-b for b in before)))


def _read_text(value: Any) -> int | None:
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
