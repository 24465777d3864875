"""The strip: the states of all windows of a span, a letter each, a year of them in a hundred kilobytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from onceover.errors import UsageError
from onceover.ledger.catalog import read_registered
from onceover.ledger.database import Connection
from onceover.ledger.page_overview import LETTERS, read_consistently, read_letters, read_states
from onceover.model.window import to_ms

MAX_SLOTS: Final = 366 * 24 * 60
"""Windows of one answer: a leap year of one minute each, or five years of five minutes."""

MEANINGS: Final = {
    ".": "none",
    **{letter: state for state, letter in LETTERS.items()},
    "C": "certified from the ledger",
    "R": "certified from raw",
    "L": "certified but for an accepted loss",
}
"""What each letter of a strip says."""


def read_strip(connection: Connection, name: str, start: datetime, end: datetime) -> Mapping[str, Any]:
    """Return `states`, a letter of MEANINGS for each of the pipeline's windows in `[from, to)`, of `minutes` each, as
    they were `at` a moment. Windows of a zone have `runs` of starts, the first in ms and their number, `minutes` apart,
    and the number of windows before each of the zone's `days`, of which the first is `day`.

    Raise UsageError for an unknown pipeline, a range that is not of whole windows, or one of more than MAX_SLOTS."""
    with read_consistently(connection):
        windowing = read_registered(connection, name).windowing
        span, minutes = windowing.span(start, end), windowing.minutes
        if (slots := (span.end - span.start).total_seconds() / 60 / minutes) > MAX_SLOTS:
            raise UsageError(f"{slots:,.0f} windows are more than one answer has; choose at most {MAX_SLOTS:,}")
        head = {"minutes": minutes, "from": span.start, "to": span.end}
        if not windowing.zone:
            return {**head, **read_states(connection, name, span.start, span.end, minutes)}
        letters, at = read_letters(connection, name, span.start, span.end)
    starts = list(windowing.list_starts(span.start, span.end))
    first = windowing.local_day(span.start)
    last = windowing.local_day(span.end - timedelta(milliseconds=1))
    days = (windowing.begin_day(first + timedelta(days=n)) for n in range((last - first).days + 1))
    return {
        **head,
        "zone": windowing.zone,
        "day": first.isoformat(),
        "runs": _join(starts, minutes * 60_000),
        "days": [bisect_left(starts, to_ms(day)) for day in days],
        "states": "".join(letters.get(each, ".") for each in starts),
        "at": at,
    }


def _join(starts: Sequence[int], length: int) -> list[list[int]]:
    runs: list[list[int]] = []
    for start in starts:
        if runs and start == runs[-1][0] + runs[-1][1] * length:
            runs[-1][1] += 1
        else:
            runs.append([start, 1])
    return runs
