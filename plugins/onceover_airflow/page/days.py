"""One day of windows as rows of an hour each, every window a link: what the strip shows, without a script."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from onceover.explain.page.strip import read_strip
from onceover.ledger.database import Connection

_PER_ROW_MINUTES = 60


@dataclass(frozen=True, slots=True)
class Day:
    """A day's windows, each its start and its letter in the strip, in rows of an hour, or one row for each window that
    is longer."""

    start: datetime
    rows: list[list[tuple[datetime, str]]]

    @property
    def previous(self) -> str:
        return (self.start - timedelta(days=1)).date().isoformat()

    @property
    def next(self) -> str:
        return (self.start + timedelta(days=1)).date().isoformat()


def draw_day(connection: Connection, name: str, start: datetime) -> Day:
    """Return the day that begins at `start`, midnight UTC."""
    strip = read_strip(connection, name, start, start + timedelta(days=1))
    minutes, states = strip["minutes"], strip["states"]
    cells = [(start + number * timedelta(minutes=minutes), letter) for number, letter in enumerate(states)]
    per_row = max(1, _PER_ROW_MINUTES // minutes)
    return Day(start, [cells[at : at + per_row] for at in range(0, len(cells), per_row)])
