"""The windows that a run is about: explicit times first, then the data interval, else a clear failure.

The logical date and the run id are never used: a scheduled run's logical date is the start of its interval, a manual
run's is the end, and a run made over REST may have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from onceover.errors import UsageError
from onceover.model.window import WindowRange
from onceover.model.windowing import Windowing


@dataclass(frozen=True, slots=True)
class DataInterval:
    """Airflow's `[start, end)` of a run. Both are None if the run has no interval."""

    start: datetime | None
    end: datetime | None

    @property
    def is_empty(self) -> bool:
        """True for zero width too: a cron schedule without intervals, a manual run of an unscheduled DAG."""
        return self.start is None or self.end is None or self.end <= self.start


NO_INTERVAL = DataInterval(None, None)


def parse_range(start: str | None, end: str | None, interval: DataInterval, *, windowing: Windowing) -> WindowRange:
    """Return whole windows `[start, end)` in UTC, aligned. Raises UsageError for any other range, also for one that
    lacks a bound: half a range is a mistake, not a range without an end."""
    if start is not None and end is not None:
        return windowing.parse_range(start, end)
    if start is not None or end is not None:
        missing = "from" if start is None else "to"
        raise UsageError(f"{missing!r} is missing; give 'from' (inclusive) and 'to' (exclusive) like 2013-01-01T05:00Z")
    if interval.is_empty:
        raise UsageError(
            "this run names no windows: it has neither 'from' and 'to' nor a data interval; trigger it with both "
            "times, or start a backfill"
        )
    bounds = _utc(interval.start), _utc(interval.end)
    # Days of Airflow are days of UTC, whose midnights may begin no window of a zone.
    return windowing.find_range(*bounds) if windowing.zone else windowing.span(*bounds)


def _utc(moment: datetime | None) -> datetime:
    """Return the moment as a plain datetime in UTC; Airflow passes a subclass of its own."""
    if moment is None or moment.tzinfo is None:
        raise UsageError("the data interval has a bound without a time zone; trigger the run again with times in UTC")
    utc = moment.astimezone(UTC)
    return datetime(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, tzinfo=UTC)
