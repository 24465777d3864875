from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.errors import UsageError
from onceover.model.window import (
    Window,
    WindowRange,
    format_moment,
    from_ms,
    parse_moment,
    to_ms,
)

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2286, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(moments)
def test_milliseconds_are_exact(moment: datetime) -> None:
    assert from_ms(to_ms(moment)) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def test_window_must_be_utc_and_end_after_its_start() -> None:
    with pytest.raises(UsageError, match="not UTC"):
        Window(datetime(2013, 1, 1, tzinfo=timezone(timedelta(hours=1))), NOON)
    with pytest.raises(UsageError, match="ends before it starts"):
        Window(NOON, NOON)


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


@pytest.mark.parametrize(
    "text", ["2013-01-01T12:00Z", "2013-01-01T13:00:00+01:00", "2013-01-01T17:45+0545", " 2013-01-01T12:00:00.000Z "]
)
def test_time_may_be_written_in_any_zone(text: str) -> None:
    assert parse_moment(text) == NOON


def test_window_is_written_as_it_is_read() -> None:
    assert str(Window(NOON, NOON + timedelta(hours=1))) == "2013-01-01T12:00Z"
    assert format_moment(NOON + timedelta(seconds=5)) == "2013-01-01T12:00:05Z"


@pytest.mark.parametrize(("start", "end"), [("12:00", "12:00"), ("12:00", "11:00")])
def test_empty_or_reversed_range_is_refused_and_never_means_all(start: str, end: str) -> None:
    with pytest.raises(UsageError, match="empty or reversed"):
        WindowRange(parse_moment(f"2013-01-01T{start}Z"), parse_moment(f"2013-01-01T{end}Z"))


def test_range_that_ends_too_late_is_in_the_future() -> None:
    chosen = WindowRange(NOON - timedelta(hours=1), NOON)
    assert chosen.require_end_by(NOON) is chosen
    with pytest.raises(UsageError, match="future"):
        chosen.require_end_by(NOON - timedelta(seconds=1))
