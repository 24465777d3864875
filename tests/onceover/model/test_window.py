from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.errors import UsageError
from onceover.model.window import (
    Window,
    WindowRange,
    floor,
    format_moment,
    from_ms,
    is_window_length,
    parse_moment,
    parse_window,
    to_ms,
)

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
LENGTHS = [n for n in range(1, 1441) if 1440 % n == 0]
moments = st.datetimes(datetime(1970, 1, 1), datetime(2286, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(moments, st.sampled_from(LENGTHS))
def test_moment_lies_in_exactly_one_window(moment: datetime, minutes: int) -> None:
    window = Window.at(floor(moment, minutes), minutes)
    assert window.start <= moment < window.end
    assert floor(window.end, minutes) == window.end
    assert floor(window.start, minutes) == window.start


@given(st.dates(date(1970, 1, 1), date(2200, 1, 1)), st.sampled_from(LENGTHS))
def test_windows_of_a_day_tile_it(day: date, minutes: int) -> None:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    of_day = WindowRange(midnight, midnight + timedelta(days=1), minutes)
    windows = list(of_day)
    assert windows[0].start == midnight
    assert windows[-1].end == midnight + timedelta(days=1)
    assert all(a.end == b.start for a, b in itertools.pairwise(windows))
    assert len(windows) == len(of_day) == 1440 // minutes


@given(moments)
def test_milliseconds_are_exact(moment: datetime) -> None:
    assert from_ms(to_ms(moment)) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@pytest.mark.parametrize("minutes", [0, -60, 7, 1441, 2880])
def test_window_length_that_does_not_divide_a_day_is_refused(minutes: int) -> None:
    assert not is_window_length(minutes)
    with pytest.raises(UsageError):
        Window(NOON, NOON + timedelta(minutes=minutes))


def test_window_must_be_utc_and_aligned_to_the_day() -> None:
    with pytest.raises(UsageError, match="not UTC"):
        Window(datetime(2013, 1, 1, tzinfo=timezone(timedelta(hours=1))), NOON)
    with pytest.raises(UsageError, match="not the start"):
        Window.at(NOON + timedelta(minutes=7), 60)


@pytest.mark.parametrize(
    "text",
    ["", "now", "2013-01-01", "2013-01-01T05:00", "2013-01-01 05:00Z", "2013-13-01T05:00Z", "2013-01-01T25:00Z",
     "2013-01-01T05:00Z; DROP TABLE x", "../../etc/passwd", "1" * 500, "٢٠١٣-٠١-٠١T٠٥:٠٠Z", "0001-01-01T00:00+23:59"],
)  # fmt: skip
def test_malformed_time_or_zone_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_moment(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize("text", ["2013-01-01T12:00Z", "2013-01-01T13:00:00+01:00", " 2013-01-01T12:00:00.000Z "])
def test_time_may_be_written_in_any_zone(text: str) -> None:
    assert parse_moment(text) == NOON


def test_window_is_written_as_it_is_read() -> None:
    window = parse_window("2013-01-01T12:00Z", 60)
    assert str(window) == "2013-01-01T12:00Z"
    assert format_moment(NOON + timedelta(seconds=5)) == "2013-01-01T12:00:05Z"


def test_unaligned_window_is_refused_with_the_one_that_holds_it() -> None:
    with pytest.raises(UsageError, match="the one that holds it starts at 2013-01-01T12:00Z"):
        parse_window("2013-01-01T12:07Z", 60)


def test_last_window_of_the_calendar_has_no_end_and_is_refused() -> None:
    with pytest.raises(UsageError, match="after the year 9999"):
        parse_window("9999-12-31T23:55Z", 5)


@pytest.mark.parametrize(("start", "end"), [("12:00", "12:00"), ("12:00", "11:00")])
def test_empty_or_reversed_range_is_refused_and_never_means_all(start: str, end: str) -> None:
    with pytest.raises(UsageError, match="empty or reversed"):
        WindowRange.parse(f"2013-01-01T{start}Z", f"2013-01-01T{end}Z", 60)


def test_range_must_be_aligned_at_both_ends() -> None:
    with pytest.raises(UsageError, match="not the start"):
        WindowRange.parse("2013-01-01T11:30Z", "2013-01-01T12:00Z", 60)
    with pytest.raises(UsageError, match="not the start"):
        WindowRange.parse("2013-01-01T11:00Z", "2013-01-01T12:30Z", 60)


def test_range_that_ends_too_late_is_in_the_future() -> None:
    chosen = WindowRange.parse("2013-01-01T11:00Z", "2013-01-01T12:00Z", 60)
    assert chosen.require_end_by(NOON) is chosen
    with pytest.raises(UsageError, match="future"):
        chosen.require_end_by(NOON - timedelta(seconds=1))
