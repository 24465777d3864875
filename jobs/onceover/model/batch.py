"""A micro-batch and its landings as values: records delivered by the reader, bytes appended, and their agreement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from onceover.errors import LandingMismatchError, TerminalError
from onceover.model.digest import EMPTY, Digest, sum_digests
from onceover.model.offsets import KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class RangeRead:
    """One offset range as the reader delivered it. Fewer records than offsets is legal: markers take offsets."""

    offsets: OffsetRange
    digest: Digest
    max_event_time: datetime | None
    oldest_record: datetime | None = None  # smallest Kafka timestamp, where the records have one
    leader_epochs: tuple[tuple[int, int], ...] = ()  # [epoch, first offset] of the records; none: unknown

    def __post_init__(self) -> None:
        if self.digest.records > len(self.offsets):
            raise TerminalError(
                f"the reader delivered {self.digest.records} records of {self.offsets}, more than it has"
            )


@dataclass(frozen=True, slots=True)
class LandingPart:
    """Count and digest of one Kafka partition's records within a landing."""

    source: KafkaPartition
    digest: Digest


@dataclass(frozen=True, slots=True)
class Landing:
    """One append of one batch to one window file, or to one day's quarantine file: bytes `[byte_start, byte_end)`; none
    where the records are in a compacted file."""

    window_start: datetime | None
    quarantine_day: date | None
    byte_start: int
    byte_end: int
    proved: bool
    parts: tuple[LandingPart, ...]

    def __post_init__(self) -> None:
        if (self.window_start is None) == (self.quarantine_day is None):
            raise TerminalError("a landing belongs to a window or to a day of quarantine")
        if not 0 <= self.byte_start <= self.byte_end or not self.parts:
            raise TerminalError(f"an empty landing at bytes [{self.byte_start}, {self.byte_end})")

    @property
    def digest(self) -> Digest:
        return sum_digests(part.digest for part in self.parts)


@dataclass(frozen=True, slots=True)
class Increment:
    """The count and digest that a batch adds to one window's control row."""

    window_start: datetime
    window_end: datetime
    digest: Digest


def require_all_landed(read: Sequence[RangeRead], landings: Iterable[Landing]) -> None:
    """Raise LandingMismatchError unless, per Kafka partition, windows and quarantine together got exactly the delivered
    records."""
    landed: dict[KafkaPartition, Digest] = defaultdict(Digest)
    for landing in landings:
        for part in landing.parts:
            landed[part.source] += part.digest
    delivered: dict[KafkaPartition, Digest] = defaultdict(Digest)
    for piece in read:
        delivered[piece.offsets.source] += piece.digest
    for source in sorted(delivered.keys() | landed.keys()):
        if delivered.get(source, EMPTY) != landed.get(source, EMPTY):
            raise LandingMismatchError(
                f"Kafka partition {source}: the reader delivered {delivered.get(source, EMPTY)}, "
                f"but {landed.get(source, EMPTY)} landed; the batch does not count and is read again"
            )
