"""What a pipeline's raw holds, as values: its files, and the unbroken runs of offsets in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from onceover.model.digest import Digest, sum_digests
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class RawFile:
    """One window's file, or one day's of quarantine, and how many bytes it has."""

    path: str
    length: int
    window_start: datetime | None = None
    quarantine_day: date | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Offsets that raw holds without a gap, as far as they go, and what each file, by its number, holds of them."""

    offsets: OffsetRange
    held: tuple[tuple[int, Digest], ...]
    max_event_time: datetime | None
    oldest_record: datetime | None

    @property
    def digest(self) -> Digest:
        return sum_digests(digest for _, digest in self.held)


# What stands in for a window's text once that was let go.


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """The Parquet file that stands in for a window's text: the records in it, and its bytes."""

    digest: Digest
    bytes: int
