"""A pipeline's raw as values: its files, and what a scan of all of them finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from onceover.model.digest import Digest, sum_digests
from onceover.model.offsets import KafkaPartition, OffsetRange

COMPACTED: Final = ".zst"
"""The end of a compacted file's name."""


@dataclass(frozen=True, slots=True)
class RawFile:
    """One window's file, text or compacted, or one day's of quarantine, with its length in bytes."""

    path: str
    length: int
    window_start: datetime | None = None
    quarantine_day: date | None = None

    @property
    def is_compacted(self) -> bool:
        return self.path.endswith(COMPACTED)


LONGEST_RUN: Final = 100_000
"""Runs end at its multiples, at the latest."""


@dataclass(frozen=True, slots=True)
class Run:
    """A range of offsets that raw holds without a gap, and the digest of each file's part, by the file's number.
    `leader_epochs` are as in `RangeRead`, as the lines say. All IDs have the same contract `version`, or were released
    under it."""

    offsets: OffsetRange
    held: tuple[tuple[int, Digest], ...]
    max_event_time: datetime | None
    oldest_record: datetime | None
    leader_epochs: tuple[tuple[int, int], ...] = ()
    version: int = 1

    @property
    def digest(self) -> Digest:
        return sum_digests(digest for _, digest in self.held)


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """The file of a compaction that replaces a window's text: the digest of its records, and its length in bytes."""

    digest: Digest
    bytes: int


@dataclass(frozen=True, slots=True)
class UnknownLines:
    """The number of lines that one Kafka partition has of a contract that has no file, and the path of a file that
    holds some."""

    source: KafkaPartition
    contract: str
    path: str
    lines: int


@dataclass(frozen=True, slots=True)
class RawContents:
    """All intact records of a pipeline's raw, by ID.

    An ID that is in several places, or has several contents, is in as many `layers`, as if it had been read so often; a
    line repeated in one file counts once, and so does a record that two versions dated into two windows. `released` are
    the records of windows that quarantine holds too, or whose lines say so. `compacted` are the digests of compacted
    files, by the file's number, `unknown` the lines of contracts without a file.
    """

    layers: tuple[tuple[Run, ...], ...] = ()
    released: tuple[Run, ...] = ()
    compacted: Mapping[int, Digest] | None = None
    unknown: tuple[UnknownLines, ...] = ()
