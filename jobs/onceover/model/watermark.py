"""When a window closes: the watermark over a topic's Kafka partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """Largest event time up to the frontier, and for how long the frontier has stood at the log's end (None: not)."""

    max_event_time: datetime | None
    caught_up_for: timedelta | None


def watermark(
    partitions: Iterable[PartitionProgress], allowed_lateness: timedelta, idle_after: timedelta
) -> tuple[datetime | None, bool]:
    """The minimum of the largest event times less the allowed lateness, and whether every window is closed.

    Kafka partitions that are caught up and have been idle for `idle_after` are left out; when all are, every window
    is closed. One that is not idle and has shown no event time yet holds everything back (None).
    """
    known = list(partitions)
    active = [p for p in known if p.caught_up_for is None or p.caught_up_for < idle_after]
    if not active:
        return None, bool(known)
    moments = [p.max_event_time for p in active if p.max_event_time is not None]
    if len(moments) < len(active):
        return None, False
    return min(moments) - allowed_lateness, False
