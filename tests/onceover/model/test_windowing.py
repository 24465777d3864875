"""Windows of UTC and of every zone, against the zones' clocks as `zoneinfo` reads them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.config.zones import list_zones, open_zone, read_changes
from onceover.errors import UsageError
from onceover.model.window import WindowRange, from_ms, to_ms
from onceover.model.windowing import Windowing, is_window_length

LENGTHS = [n for n in range(1, 1441) if 1440 % n == 0]
LAST = int(datetime(2038, 1, 1, tzinfo=UTC).timestamp())
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2286, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@lru_cache
def of_zone(minutes: int, zone: str) -> Windowing:
    return Windowing(minutes, zone, read_changes(zone))


def find_starts(near: datetime, zone: ZoneInfo, minutes: int) -> set[datetime]:
    """Return the starts of windows within a day of a moment: of each multiple of their length on the clock the instant
    at which the clock shows it first, and again if windows are no longer than what it repeats; of a multiple that it
    skips the instant of the change."""
    midnight = (near.astimezone(zone) - 2 * DAY).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    starts = set()
    for number in range(4 * 1440 // minutes):
        shown = midnight + number * timedelta(minutes=minutes)
        first, second = (shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if first.astimezone(zone).replace(tzinfo=None) != shown:
            first = second = bisect_change(zone, second, first)
        starts.add(first)
        if second - first >= timedelta(minutes=minutes):
            starts.add(second)
    return {start for start in starts if abs(start - near) <= DAY}


def bisect_change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    offset = before.astimezone(zone).utcoffset()
    while after - before > SECOND:
        middle = before + (after - before) // (2 * SECOND) * SECOND
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == offset else (before, middle)
    return after


def list_differences(zone: str, lengths: tuple[int, ...]) -> Iterator[tuple[str, int, datetime]]:
    """Yield each zone, length and change around which the windows begin at other instants than the clock says."""
    for second, _ in read_changes(zone)[1:]:
        near = datetime.fromtimestamp(second, UTC)
        for minutes in lengths:
            starts = of_zone(minutes, zone).list_starts(near - DAY, near + DAY + SECOND / 1000)
            if {from_ms(start) for start in starts} != find_starts(near, open_zone(zone), minutes):
                yield zone, minutes, near
        if second > LAST:
            return


@pytest.mark.parametrize(
    "zone",
    ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Havana", "Asia/Beirut",
     "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca", "Africa/Monrovia", "Antarctica/Troll"],
)  # fmt: skip
def test_windows_begin_as_the_zones_clock_says(zone: str) -> None:
    assert not list(list_differences(zone, (1440, 720, 360, 60, 30, 15)))


@pytest.mark.rare
@pytest.mark.parametrize("letter", sorted({name[0] for name in list_zones()}))
def test_every_zone_and_change(letter: str) -> None:
    zones = {read_changes(name): name for name in list_zones() if name.startswith(letter)}
    assert not [each for zone in zones.values() for each in list_differences(zone, (1440, 360, 60))]


@given(moments, st.sampled_from(LENGTHS), st.sampled_from(["", "Europe/Berlin", "Pacific/Apia", "America/St_Johns"]))
def test_moment_lies_in_exactly_one_window(moment: datetime, minutes: int, zone: str) -> None:
    windowing = of_zone(minutes, zone) if zone else Windowing(minutes)
    window = windowing.window_at(windowing.floor(moment))
    assert window.start <= moment < window.end
    assert windowing.floor(window.end) == window.end
    assert windowing.floor(window.end - SECOND / 1000) == window.start
    assert windowing.find_range(window.start, window.end) == windowing.span(window.start, window.end)


@given(st.dates(date(1970, 1, 1), date(2200, 1, 1)), st.sampled_from(LENGTHS))
def test_windows_of_a_day_tile_it(day: date, minutes: int) -> None:
    windowing = Windowing(minutes)
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    starts = [from_ms(start) for start in windowing.list_starts(midnight, midnight + DAY)]
    assert starts[0] == midnight == windowing.begin_day(day)
    assert {b - a for a, b in itertools.pairwise([*starts, midnight + DAY])} == {timedelta(minutes=minutes)}


@given(st.dates(date(1970, 1, 2), date(2037, 12, 31)), st.sampled_from(["Europe/Berlin", "Asia/Beirut"]))
def test_day_is_the_zones(day: date, zone: str) -> None:
    windowing = of_zone(1440, zone)
    start = windowing.begin_day(day)
    assert start.astimezone(open_zone(zone)).date() == windowing.local_day(start) == day
    assert (start - SECOND).astimezone(open_zone(zone)).date() < day
    assert windowing.is_start(start)


def test_skipped_day_has_no_window_and_begins_with_the_next() -> None:
    windowing = of_zone(1440, "Pacific/Apia")
    days = [windowing.begin_day(date(2011, 12, day)) for day in (29, 30, 31)]
    assert [f"{day:%d %H:%M}" for day in days] == ["29 10:00", "30 10:00", "30 10:00"]
    assert windowing.window_at(days[0]).end == days[2]
    assert windowing.window_at(days[2]).local == "2011-12-31T00:00+14:00 Pacific/Apia"


def test_days_of_23_and_25_hours() -> None:
    windowing = of_zone(1440, "Europe/Berlin")
    hours = [
        (windowing.window_at(windowing.begin_day(day)).end - windowing.begin_day(day)) / timedelta(hours=1)
        for day in (date(2026, 3, 28), date(2026, 3, 29), date(2026, 10, 25))
    ]
    assert hours == [24, 23, 25]
    assert windowing.pieces.longest == 25 * 3_600_000
    assert Windowing(60).pieces.longest == 3_600_000


def test_interval_has_the_windows_that_end_in_it() -> None:
    windowing = of_zone(1440, "Europe/London")
    day = datetime(2026, 10, 25, tzinfo=UTC)  # its window began at 23:00 the day before and has 25 hours
    assert windowing.find_range(day, day + DAY) == WindowRange(day - timedelta(hours=1), day + DAY)
    azores = of_zone(1440, "Atlantic/Azores")  # from midnight to 01:00 of the next day: no window ends in this one
    assert azores.find_range(day, day + DAY) == WindowRange(day, day + DAY + timedelta(hours=1))
    assert azores.find_range(day + DAY, day + 2 * DAY).end == day + DAY + timedelta(hours=1)


@pytest.mark.parametrize("minutes", [0, -60, 7, 1441, 2880])
def test_length_that_does_not_divide_a_day_is_none(minutes: int) -> None:
    assert not is_window_length(minutes)


def test_unaligned_window_is_refused_with_the_one_that_holds_it() -> None:
    with pytest.raises(UsageError, match="of 60 minutes; the one that holds it starts at 2013-01-01T12:00Z"):
        Windowing(60).parse_window("2013-01-01T12:07Z")
    held = r"1440 minutes in Europe/Berlin; .* 2013-06-30T22:00Z \(2013-07-01T00:00\+02:00 Europe/Berlin\)"
    with pytest.raises(UsageError, match=held):
        of_zone(1440, "Europe/Berlin").parse_window("2013-07-01T12:07Z")
    typed = of_zone(1440, "Europe/Berlin").parse_window("2013-07-01T00:00+02:00")
    assert typed.local == "2013-07-01T00:00+02:00 Europe/Berlin"


def test_last_window_of_the_calendar_has_no_end_and_is_refused() -> None:
    with pytest.raises(UsageError, match="after the year 9999"):
        Windowing(5).parse_window("9999-12-31T23:55Z")


def test_range_must_be_aligned_at_both_ends() -> None:
    for start, end in (("11:30", "12:00"), ("11:00", "12:30")):
        with pytest.raises(UsageError, match="not the start"):
            Windowing(60).parse_range(f"2013-01-01T{start}Z", f"2013-01-01T{end}Z")


def test_milliseconds_and_floor_agree() -> None:
    at = to_ms(datetime(2026, 3, 29, 11, tzinfo=UTC))
    assert from_ms(of_zone(1440, "Europe/Berlin").floor_ms(at)) == datetime(2026, 3, 28, 23, tzinfo=UTC)
