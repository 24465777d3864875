"""Decides which windows a run is about: explicit times first, then the data interval, else a clear failure.

Never from the logical date or the run id: a scheduled run's logical date is the start of its interval, a manual
run's is the end, and a run made over REST may have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from onceover.errors import UsageError
from onceover.model.window import WindowRange


@dataclass(frozen=True, slots=True)
class DataInterval:
    """Airflow's `[start, end)` of a run. Both None where the run has none."""

    start: datetime | None
    end: datetime | None

    @property
    def is_empty(self) -> bool:
        """A cron schedule without intervals, and a manual run of an unscheduled DAG, have zero width."""
        return self.start is None or self.end is None or self.end <= self.start


def parse_range(asked_from: str | None, asked_to: str | None, interval: DataInterval, *, minutes: int) -> WindowRange:
    """Whole windows `[start, end)` in UTC, aligned. Raises UsageError for anything else.

    Both explicit times or neither: half a range is a mistake, not a range to the end of time.
    """
    if asked_from is not None and asked_to is not None:
        return WindowRange.parse(asked_from, asked_to, minutes)
    if asked_from is not None or asked_to is not None:
        missing = "from" if asked_from is None else "to"
        raise UsageError(f"{missing!r} is missing; give both, from inclusive, to exclusive, like 2013-01-01T05:00Z")
    if interval.is_empty:
        raise UsageError(
            "this run names no windows: it has neither 'from' and 'to' nor a data interval; trigger it with both "
            "times, or as a backfill"
        )
    return WindowRange(_utc(interval.start), _utc(interval.end), minutes)


def _utc(moment: datetime | None) -> datetime:
    """The moment as a plain datetime in UTC; Airflow hands out a subclass of its own."""
    if moment is None or moment.tzinfo is None:
        raise UsageError("the data interval has a bound without a zone; trigger the run again with times in UTC")
    there = moment.astimezone(UTC)
    return datetime(
        there.year, there.month, there.day, there.hour, there.minute, there.second, there.microsecond, tzinfo=UTC
    )
