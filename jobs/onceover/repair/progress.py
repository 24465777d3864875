"""How far a repair of many windows is: what is done, and an estimate of the rest."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from onceover.model.claim import ClaimedWindow
from onceover.repair.groups import count_records

log = logging.getLogger(__name__)
WINDOW_RECORDS = 2_000  # to publish a window takes as long as to read so many records


class RepairProgress:
    """Logs a line after each group but the last: windows, records and bytes, and the seconds that are left at the pace
    so far."""

    def __init__(self, claimed: Sequence[ClaimedWindow], clock: Callable[[], float] = time.monotonic) -> None:
        self._windows, self._records = len(claimed), sum(map(count_records, claimed))
        self._clock, self._started = clock, clock()
        self._windows_done = self._records_done = self._bytes = 0

    def add_bytes(self, size: int) -> None:
        """Count these bytes as read. A window that is read twice, as after a failed query, counts twice."""
        self._bytes += size

    def finish(self, group: Sequence[ClaimedWindow]) -> None:
        """Count these windows as done, whatever became of them."""
        self._windows_done += len(group)
        self._records_done += sum(map(count_records, group))
        if self._windows_done < self._windows:
            log.info(
                "done with %s of %s windows, %s of %s records; %.1f MiB read; about %s left",
                *(f"{n:,}" for n in (self._windows_done, self._windows, self._records_done, self._records)),
                self._bytes / 2**20,
                format_seconds(self._estimate()),
            )

    def _estimate(self) -> float:
        done = self._records_done + WINDOW_RECORDS * self._windows_done
        whole = self._records + WINDOW_RECORDS * self._windows
        return (self._clock() - self._started) * (whole - done) / done


def format_seconds(seconds: float) -> str:
    """Return a duration for people: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
