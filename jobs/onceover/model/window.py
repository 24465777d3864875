"""A window: the half-open event-time interval that is the unit of repair, and its text form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from onceover.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)")


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """An interval `[start, end)`, aware UTC, as a contract's `Windowing` cuts event time. `local` is its start by the
    clock of the windows' zone, for people; empty for windows of UTC."""

    start: datetime
    end: datetime
    local: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for moment in (self.start, self.end):
            if moment.tzinfo is None or moment.utcoffset() != timedelta(0):
                raise UsageError(f"window bound {moment.isoformat()} is not UTC; write it like 2013-01-01T05:00Z")
        if self.end <= self.start:
            raise UsageError(f"window {format_moment(self.start)} ends before it starts")

    def __str__(self) -> str:
        return format_moment(self.start)

    @property
    def shown(self) -> str:
        """The start, and what the zone's clock shows then."""
        return join_times(str(self), self.local)


def join_times(start: str, local: str | None) -> str:
    """Return a window's start as people see it: in UTC, then by the zone's clock, if the window has a zone."""
    return f"{start} ({local})" if local else start


def to_ms(moment: datetime) -> int:
    """Return milliseconds since 1970, rounded down, without a float in between."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def format_moment(moment: datetime) -> str:
    """Write a moment as every page and log does: 2013-01-01T05:00Z, with seconds only if there are any."""
    text = moment.astimezone(UTC).isoformat(timespec="auto" if moment.second or moment.microsecond else "minutes")
    return text.replace("+00:00", "Z")


def format_second(moment: datetime) -> str:
    """Write a moment to the second."""
    return format_moment(moment.replace(microsecond=0))


def format_minute(moment: datetime) -> str:
    """Write a moment to the minute."""
    return format_moment(moment.replace(second=0, microsecond=0))


def parse_moment(text: str) -> datetime:
    """Parse a typed time into an aware moment. Raise UsageError for a malformed time, or one without a zone."""
    cleaned = text.strip()
    if not _WRITTEN.fullmatch(cleaned):
        raise UsageError(f"{_quote(cleaned)} is not a time with its zone; write it like 2013-01-01T05:00Z")
    try:
        return datetime.fromisoformat(cleaned).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{_quote(cleaned)} is not a time ({error}); write it like 2013-01-01T05:00Z") from None


@dataclass(frozen=True, slots=True)
class WindowRange:
    """A range `[start, end)` of whole windows, from a command, a form or a data interval."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise UsageError(
                f"the range from {format_moment(self.start)} to {format_moment(self.end)} is empty or reversed"
            )

    def require_end_by(self, newest: datetime) -> WindowRange:
        """Return this range. Raise UsageError if it ends later than `newest`."""
        if self.end > newest:
            raise UsageError(
                f"the range ends at {format_moment(self.end)}, in the future, where the ledger has no "
                "window; end it earlier"
            )
        return self


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


# The watermark over a topic's Kafka partitions, which closes windows.


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """The largest event time up to the frontier, and the time for which the frontier has been at the log's end (None:
    it is not)."""

    max_event_time: datetime | None
    caught_up_for: timedelta | None


def compute_watermark(
    partitions: Iterable[PartitionProgress], allowed_lateness: timedelta, idle_after: timedelta
) -> tuple[datetime | None, bool]:
    """Return the minimum of the largest event times less the allowed lateness, and whether every window is closed.

    Kafka partitions that are caught up and have been idle for `idle_after` are left out; when all are, every window
    is closed. One that is not idle and has shown no event time yet holds everything back (None).
    """
    progress = list(partitions)
    active = [p for p in progress if p.caught_up_for is None or p.caught_up_for < idle_after]
    if not active:
        return None, bool(progress)
    moments = [p.max_event_time for p in active if p.max_event_time is not None]
    if len(moments) < len(active):
        return None, False
    return min(moments) - allowed_lateness, False
