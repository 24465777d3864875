"""The strip: the states of all windows of a span, a letter each, a year of them in a hundred kilobytes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from onceover.errors import UsageError
from onceover.ledger.catalog import read_registered
from onceover.ledger.database import Connection
from onceover.ledger.page_overview import LETTERS, read_consistently, read_states
from onceover.model.window import WindowRange

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
    they were `at` a moment. Raise UsageError for an unknown pipeline, a range that is not of whole windows, or one of
    more than MAX_SLOTS windows."""
    with read_consistently(connection):
        minutes = read_registered(connection, name).contract.window_minutes
        span = WindowRange(start, end, minutes)
        if (slots := (span.end - span.start).total_seconds() / 60 / minutes) > MAX_SLOTS:
            raise UsageError(f"{slots:,.0f} windows are more than one answer has; choose at most {MAX_SLOTS:,}")
        row = read_states(connection, name, span.start, span.end, minutes)
    return {"minutes": minutes, "from": span.start, "to": span.end, **row}
