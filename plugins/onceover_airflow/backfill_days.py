"""The days in UTC that a backfill asks for, and those that Airflow leaves out of it.

Airflow's form sends midnights of the browser's time zone, the last of which begins the last day. A day there is a part
of two days in UTC, and both are asked for:

    form     5 to 7 January in Los Angeles      5 to 7 January in Tokyo        5 to 7 January in UTC
    sends    5th 08:00Z to 7th 08:00Z           4th 15:00Z to 6th 15:00Z       5th 00:00Z to 7th 00:00Z
    days     5, 6, 7, 8                         4, 5, 6, 7                     5, 6, 7
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from onceover.errors import UsageError

LEFT_OUT = "left out of the backfill"
"""The key of a run's conf with the days that its backfill has no run of. No form's key has spaces."""
_DAY = timedelta(days=1)


def name_first_day(first: datetime) -> datetime:
    """Return the midnight in UTC of the first day that a backfill from that moment asks for."""
    return first.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def name_last_day(last: datetime) -> datetime:
    """Return the midnight in UTC of the last day that a backfill to that moment asks for."""
    midnight = name_first_day(last)
    return midnight if midnight == last else midnight + _DAY


def list_left_out(
    first: datetime, last: datetime, created_at: datetime, in_flight: Iterable[datetime] = ()
) -> list[datetime]:
    """Return the days that a backfill asked for and got no run of: the day that was not over, unless the backfill
    begins after it, and days of which another run was going on. A day that has a run already is left out by choice."""
    today = name_first_day(created_at)
    asked = [today] if name_first_day(first) <= today <= name_last_day(last) else []
    return sorted({*in_flight, *asked})


def require_all_days(conf: Mapping[str, Any]) -> None:
    """Raise UsageError if that conf of a run names days that its backfill left out."""
    if days := conf.get(LEFT_OUT):
        named = ", ".join(map(str, days)) if isinstance(days, list) else str(days)
        raise UsageError(
            f"the backfill asked for days that have no run: {named[:200]}. They were not over in UTC when it began, or "
            "another run of them was going on: start a backfill of them later, or repair their windows by "
            "repair_on_call"
        )
