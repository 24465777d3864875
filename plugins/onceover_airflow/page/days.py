"""One day of windows as rows of an hour each, every window a link: what the strip shows, without a script."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from onceover.explain.page import read_strip
from onceover.explain.page.strip import MEANINGS
from onceover.ledger.database import Connection

_PER_ROW_MINUTES = 60


@dataclass(frozen=True, slots=True)
class Cell:
    """A window of the day: its start, its letter in the strip, and what the letter says."""

    start: datetime
    letter: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Day:
    """A day's windows, in rows of an hour, or one row for each window that is longer."""

    start: datetime
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def previous(self) -> str:
        return (self.start - timedelta(days=1)).date().isoformat()

    @property
    def next(self) -> str:
        return (self.start + timedelta(days=1)).date().isoformat()


def draw_day(connection: Connection, name: str, start: datetime) -> Day:
    """Return the day that begins at `start`, midnight UTC."""
    strip = read_strip(connection, name, start, start + timedelta(days=1))
    cells = [
        Cell(start + number * timedelta(minutes=strip.minutes), letter, MEANINGS[letter])
        for number, letter in enumerate(strip.states)
    ]
    per_row = max(1, _PER_ROW_MINUTES // strip.minutes)
    return Day(start, tuple(tuple(cells[at : at + per_row]) for at in range(0, len(cells), per_row)))
