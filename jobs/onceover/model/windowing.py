"""Where windows begin: at each multiple of their length on a clock, UTC's or a zone's, from midnight on.

    Europe/Berlin, 1 day     | 29 March, 23 h |      30 March, 24 h      |
    Europe/Berlin, 6 hours   |00  5 h |06     |12     |18     |00
    UTC                     23:00    04:00   10:00   16:00   22:00

Where a zone's clock skips the time at which a window would begin, the window begins at the change. Where the clock
repeats such a time, it begins at the first one; windows no longer than what is repeated begin at both. So windows have
no gap between them and never overlap, and each instant has one window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from onceover.errors import UsageError
from onceover.model.window import Window, WindowRange, format_moment, from_ms, join_times, parse_moment, to_ms

DAY_MINUTES = 24 * 60
FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Pieces:
    """The starts of all windows, ms: `firsts[n]`, and from it on every `length` up to `lasts[n]`. The window that
    starts there ends at `firsts[n + 1]`."""

    length: int
    firsts: tuple[int, ...]
    lasts: tuple[int, ...]

    @property
    def longest(self) -> int:
        """Ms of the longest window."""
        around = zip(self.lasts, self.firsts[1:], strict=False)
        return max(self.length, *(first - last for last, first in around), 0)


@dataclass(frozen=True, slots=True)
class Windowing:
    """Windows of so many minutes by the clock of UTC, or of `zone`.

    `changes` are the zone's offsets from UTC, each from a second since 1970 on: the contract keeps them, so that no
    other version of the time zone data dates a record differently. The first one is that of 1970.
    """

    minutes: int
    zone: str = ""
    changes: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return f"{self.minutes} min" + (f" in {self.zone}" if self.zone else "")

    @property
    def pieces(self) -> Pieces:
        return _cut(self.minutes * 60_000, self.changes or ((0, 0),))

    def floor_ms(self, moment: int) -> int:
        """Return the start of the window that holds a moment, both in ms since 1970."""
        pieces = self.pieces
        place = max(bisect_right(pieces.firsts, moment) - 1, 0)
        first = pieces.firsts[place]
        return min(pieces.lasts[place], first + (moment - first) // pieces.length * pieces.length)

    def floor(self, moment: datetime) -> datetime:
        """Return the start of the window that holds the moment."""
        if moment.tzinfo is None:
            raise UsageError(f"{moment.isoformat()} has no zone; write it like 2013-01-01T05:00Z")
        return from_ms(self.floor_ms(to_ms(moment)))

    def is_start(self, moment: datetime) -> bool:
        return self.floor(moment) == moment

    def window_at(self, start: datetime) -> Window:
        """Return the window that starts exactly there. Raises UsageError where none does, and beyond the year 9999."""
        self._require_start(start)
        try:
            return Window(start, from_ms(self._find_end(to_ms(start))), self.describe_local(start))
        except OverflowError:
            raise UsageError(f"window {format_moment(start)} ends after the year 9999; choose an earlier one") from None

    def parse_window(self, text: str) -> Window:
        """Return the window that starts at a typed time. Raises UsageError for a time at which none does."""
        return self.window_at(parse_moment(text))

    def span(self, start: datetime, end: datetime) -> WindowRange:
        """Return the range of whole windows. Raises UsageError for one that is empty or cuts a window."""
        chosen = WindowRange(start, end)
        for bound in (start, end):
            self._require_start(bound)
        return chosen

    def find_range(self, start: datetime, end: datetime) -> WindowRange:
        """Return the windows that end in an interval of time, its end included, or the one that spans it."""
        first, last = self.floor(start), self.floor(end)
        return WindowRange(first, last if first < last else from_ms(self._find_end(to_ms(first))))

    def parse_range(self, start: str, end: str) -> WindowRange:
        """Return the range between two typed times; `end` is exclusive."""
        return self.span(parse_moment(start), parse_moment(end))

    def list_starts(self, start: datetime, end: datetime) -> Iterator[int]:
        """Yield the starts of the windows that start from `start` to before `end`, in ms."""
        pieces, start_ms, end_ms = self.pieces, to_ms(start), to_ms(end)
        for first, last in zip(pieces.firsts, pieces.lasts, strict=True):
            begin = first + max(0, -((first - start_ms) // pieces.length)) * pieces.length
            yield from range(begin, min(last + 1, end_ms), pieces.length)

    def begin_day(self, day: date) -> datetime:
        """Return the first instant of a day by the windows' clock. A day that the zone skipped begins with the next."""
        midnight = to_ms(datetime.combine(day, time(tzinfo=UTC)))
        offsets = [(second * 1000, offset * 1000) for second, offset in self.changes or ((0, 0),)]
        ends = [second for second, _ in offsets[1:]] + [FOREVER]
        # From a change on, the clock is at or beyond midnight either at once or when this offset says so.
        found = (
            max(second, midnight - offset)
            for (second, offset), end in zip(offsets, ends, strict=True) if midnight - offset < end
        )  # fmt: skip
        return from_ms(next(found))

    def local_day(self, moment: datetime) -> date:
        """Return the date of a moment by the windows' clock."""
        return self.read_clock(moment).date()

    def describe_local(self, moment: datetime) -> str:
        """Return `2013-01-01T06:00+01:00 Europe/Berlin` for a moment, and nothing for windows of UTC."""
        if not self.zone:
            return ""
        minutes = (clock := self.read_clock(moment) - moment) // timedelta(minutes=1)
        offset = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
        return f"{moment.astimezone(UTC) + clock:%Y-%m-%dT%H:%M}{offset} {self.zone}"

    def show(self, start: datetime) -> str:
        """Return the start of a window as `Window.shown` does."""
        return join_times(format_moment(start), self.describe_local(start))

    def read_clock(self, moment: datetime) -> datetime:
        """Return what the windows' clock shows at a moment, as if it were UTC."""
        place = max(bisect_right(self.changes, (to_ms(moment) // 1000, FOREVER)) - 1, 0)
        return moment.astimezone(UTC) + timedelta(seconds=self.changes[place][1] if self.changes else 0)

    def _require_start(self, start: datetime) -> None:
        nearest = self.floor(start)
        if nearest != start:
            of = f"{self.minutes} minutes" + (f" in {self.zone}" if self.zone else "")
            raise UsageError(
                f"{format_moment(start)} is not the start of a window of {of}; the one that holds it starts at "
                f"{self.show(nearest)}"
            )

    def _find_end(self, start: int) -> int:
        pieces = self.pieces
        place = max(bisect_right(pieces.firsts, start) - 1, 0)
        return start + pieces.length if start < pieces.lasts[place] else pieces.firsts[place + 1]


def is_window_length(minutes: int) -> bool:
    """Return whether windows of that many minutes tile a day."""
    return 0 < minutes <= DAY_MINUTES and DAY_MINUTES % minutes == 0


@lru_cache(maxsize=64)
def _cut(length: int, changes: tuple[tuple[int, int], ...]) -> Pieces:
    firsts: list[int] = []
    lasts: list[int] = []
    for first, last in _list_pieces(length, [(second * 1000, offset * 1000) for second, offset in changes]):
        if firsts and first == lasts[-1] + length:  # the change is of no concern to windows of this length
            lasts[-1] = last
        else:
            firsts.append(first)
            lasts.append(last)
    return Pieces(length, tuple(firsts), tuple(lasts))


def _list_pieces(length: int, changes: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of starts that are `length` apart."""
    before, ends = changes[0][1], [change for change, _ in changes[1:]] + [FOREVER]
    for number, ((change, offset), end) in enumerate(zip(changes, ends, strict=True)):
        first = change + -(change + offset) % length
        skips = -(change + before) // length != -(change + offset) // length
        if first > change and (number == 0 or (offset > before and skips)):
            yield change, change
        if 0 < before - offset < length and first < change + before - offset:
            first += length
        if first < end:
            yield first, first + (end - 1 - first) // length * length
        before = offset
