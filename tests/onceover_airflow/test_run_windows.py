"""Windows of a run: explicit times, then the data interval, else a failure that says what to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from onceover.config.zones import read_changes
from onceover.errors import UsageError
from onceover.model.window import WindowRange
from onceover.model.windowing import Windowing
from onceover_airflow.operators.repair import name_bounds
from onceover_airflow.windows import DataInterval, parse_range

DAY = DataInterval(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC))
NONE = DataInterval(None, None)


def chosen(
    asked_from: str | None = None, asked_to: str | None = None, interval: DataInterval = NONE, minutes: int = 60
) -> WindowRange:
    return parse_range(asked_from, asked_to, interval, windowing=Windowing(minutes))


def test_explicit_times_win_over_the_data_interval() -> None:
    found = chosen("2013-01-05T05:00Z", "2013-01-05T07:00Z", DAY)

    assert name_bounds(found) == {"from": "2013-01-05T05:00Z", "to": "2013-01-05T07:00Z"}


def test_data_interval_of_a_day_excludes_the_next_midnight() -> None:
    assert name_bounds(chosen(interval=DAY)) == {"from": "2013-01-01T00:00Z", "to": "2013-01-02T00:00Z"}


def test_data_interval_has_a_zones_windows_that_end_in_it() -> None:
    berlin = Windowing(1440, "Europe/Berlin", read_changes("Europe/Berlin"))
    found = parse_range(None, None, DAY, windowing=berlin)
    assert name_bounds(found) == {"from": "2012-12-31T23:00Z", "to": "2013-01-01T23:00Z"}


def test_times_in_another_zone_are_converted_to_utc() -> None:
    interval = DataInterval(*(moment.astimezone(timezone(timedelta(hours=-5))) for moment in (DAY.start, DAY.end)))  # type: ignore[union-attr]

    assert chosen(interval=interval) == chosen(interval=DAY)
    found = chosen("2013-01-05T00:00-05:00", "2013-01-05T06:00Z")
    assert name_bounds(found) == {"from": "2013-01-05T05:00Z", "to": "2013-01-05T06:00Z"}


@pytest.mark.parametrize(
    ("asked_from", "asked_to", "said"),
    [
        ("2013-01-05T05:00", "2013-01-05T07:00Z", "not a time with its zone"),
        ("2013-01-05T07:00Z", "2013-01-05T05:00Z", "empty or reversed"),
        ("2013-01-05T05:00Z", "2013-01-05T05:00Z", "empty or reversed"),
        ("2013-01-05T05:10Z", "2013-01-05T07:00Z", "not the start of a window of 60 minutes"),
        ("2013-01-05T05:00Z", None, "'to' is missing"),
        (None, "2013-01-05T05:00Z", "'from' is missing"),
        ("yesterday; rm -rf /", "2013-01-05T05:00Z", "not a time"),
    ],
)
def test_malformed_range_is_refused(asked_from: str | None, asked_to: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        chosen(asked_from, asked_to, DAY)


@pytest.mark.parametrize("interval", [NONE, DataInterval(DAY.start, DAY.start)])
def test_run_that_names_no_windows_is_refused(interval: DataInterval) -> None:
    with pytest.raises(UsageError, match="names no windows"):
        chosen(interval=interval)
