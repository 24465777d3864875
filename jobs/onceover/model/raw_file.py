"""A pipeline's raw as values: its files, and the unbroken runs of offsets in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from onceover.model.digest import Digest, sum_digests
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class RawFile:
    """One window's file, or one day's of quarantine, with its length in bytes."""

    path: str
    length: int
    window_start: datetime | None = None
    quarantine_day: date | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A range of offsets that raw holds without a gap, and the digest of each file's part, by the file's number."""

    offsets: OffsetRange
    held: tuple[tuple[int, Digest], ...]
    max_event_time: datetime | None
    oldest_record: datetime | None

    @property
    def digest(self) -> Digest:
        return sum_digests(digest for _, digest in self.held)


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """The Parquet file that replaces a window's text: the digest of its records, and its length in bytes."""

    digest: Digest
    bytes: int
