"""How far a repair, a compaction or a preview of many windows is: what is done, and an estimate of the rest."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from onceover.model.wording import format_duration

log = logging.getLogger(__name__)
WINDOW_RECORDS = 2_000  # to publish a window takes as long as to read so many records


class WindowProgress:
    """Logs a line after each group but the last: windows, records and bytes, and the seconds that are left at the pace
    so far."""

    def __init__(self, windows: int, records: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._windows, self._records = windows, records
        self._clock, self._started = clock, clock()
        self._windows_done = self._records_done = self._bytes = 0

    def add_bytes(self, size: int) -> None:
        """Count these bytes as read. A window that is read twice, as after a failed query, counts twice."""
        self._bytes += size

    def finish(self, windows: int, records: int) -> None:
        """Count so many windows as done, whatever became of them, with the records that landed in them."""
        self._windows_done += windows
        self._records_done += records
        if self._windows_done < self._windows:
            log.info(
                "done with %s of %s windows, %s of %s records; %.1f MiB read; about %s left",
                *(f"{n:,}" for n in (self._windows_done, self._windows, self._records_done, self._records)),
                self._bytes / 2**20,
                format_duration(self._estimate()),
            )

    def _estimate(self) -> float:
        done = self._records_done + WINDOW_RECORDS * self._windows_done
        whole = self._records + WINDOW_RECORDS * self._windows
        return (self._clock() - self._started) * (whole - done) / done
