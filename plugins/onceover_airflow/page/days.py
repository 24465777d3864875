"""One day of windows as rows of an hour each, every window a link: what the strip shows, without a script."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from onceover.explain.page.strip import read_strip
from onceover.ledger.database import Connection
from onceover.model.window import from_ms
from onceover.model.windowing import Windowing

_PER_ROW_MINUTES = 60


@dataclass(frozen=True, slots=True)
class Day:
    """A day's windows, each its start and its letter in the strip, in rows of an hour, or one row for each window that
    is longer."""

    date: date
    rows: list[list[tuple[datetime, str]]]

    @property
    def previous(self) -> str:
        return (self.date - timedelta(days=1)).isoformat()

    @property
    def next(self) -> str:
        return (self.date + timedelta(days=1)).isoformat()


def draw_day(connection: Connection, name: str, chosen: date, windowing: Windowing) -> Day:
    """Return the day of that date by the windows' clock."""
    start, end = windowing.begin_day(chosen), windowing.begin_day(chosen + timedelta(days=1))
    states = read_strip(connection, name, start, end)["states"] if start < end else ""
    cells = [(from_ms(at), letter) for at, letter in zip(windowing.list_starts(start, end), states, strict=True)]
    per_row = max(1, _PER_ROW_MINUTES // windowing.minutes)
    return Day(chosen, [cells[at : at + per_row] for at in range(0, len(cells), per_row)])
