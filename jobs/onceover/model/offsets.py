"""Offset ranges of Kafka partitions, and the operations on them that the ledger, repair and offset stores share.

A range is half-open and its `end` is the next offset to read, as Kafka's committed offsets are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from onceover.errors import UsageError

MAX_KAFKA_PARTITION = 99_999  # five digits in an ID
GENERATION_DIGITS = 8
LARGEST_END = 2**63 - 1  # of a range: Kafka and the ledger keep it in 64 bits
_WRITTEN = re.compile(r"([0-9a-f]{8})-(\d{1,5}):(\d{1,18})-(\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class KafkaPartition:
    """One Kafka partition of one incarnation of a topic."""

    generation: str
    kafka_partition: int

    def __post_init__(self) -> None:
        if len(self.generation) != GENERATION_DIGITS or set(self.generation) - set("0123456789abcdef"):
            raise UsageError(f"generation {self.generation!r} is not {GENERATION_DIGITS} lower-case hex digits")
        if not 0 <= self.kafka_partition <= MAX_KAFKA_PARTITION:
            raise UsageError(f"Kafka partition {self.kafka_partition} is not in 0..{MAX_KAFKA_PARTITION}")

    def __str__(self) -> str:
        return f"{self.generation}-{self.kafka_partition}"


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """`[start, end)` of one Kafka partition."""

    source: KafkaPartition
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise UsageError(f"offset range [{self.start}, {self.end}) of {self.source} is reversed or negative")

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        """Return the form that people type: GENERATION-PARTITION:START-END."""
        return f"{self.source}:{self.start}-{self.end}"

    def overlaps(self, other: OffsetRange) -> bool:
        return self.source == other.source and self.start < other.end and other.start < self.end


def parse_range(text: str) -> OffsetRange:
    """Return the range that `str` of an OffsetRange gives. Raise UsageError for any other text."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text[:60]!r} is not an offset range; write it like 1f2e3d4c-0:1200-1300")
    generation, kafka_partition, start, end = match.groups()
    return OffsetRange(KafkaPartition(generation, int(kafka_partition)), int(start), int(end))


def split(ranges: Iterable[OffsetRange], most: int) -> Iterable[OffsetRange]:
    """Yield the same offsets in pieces of at most `most`."""
    for whole in ranges:
        for start in range(whole.start, whole.end, most):
            yield OffsetRange(whole.source, start, min(start + most, whole.end))


def coalesce(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return the same offsets as the fewest ranges, in order: join touching and overlapping ones, drop empty ones."""
    joined: list[OffsetRange] = []
    for piece in sorted(r for r in ranges if len(r)):
        last = joined[-1] if joined else None
        if last is not None and last.source == piece.source and piece.start <= last.end:
            joined[-1] = OffsetRange(last.source, last.start, max(last.end, piece.end))
        else:
            joined.append(piece)
    return tuple(joined)


def span_sources(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Return for each Kafka partition the range from its first offset to its last, in order."""
    by_source = [list(pieces) for _, pieces in groupby(sorted(ranges), key=lambda r: r.source)]
    return [OffsetRange(p[0].source, p[0].start, max(r.end for r in p)) for p in by_source]


def intersect(ranges: Iterable[OffsetRange], others: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return the offsets that both have, as the fewest ranges, in order."""
    whole = coalesce(ranges)
    return subtract(whole, subtract(whole, others))


def subtract(ranges: Iterable[OffsetRange], others: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return the offsets of `ranges` that `others` do not have, as the fewest ranges, in order."""
    left, right = coalesce(ranges), coalesce(others)
    rest: list[OffsetRange] = []
    at = 0
    for piece in left:
        while at < len(right) and (right[at].source, right[at].end) <= (piece.source, piece.start):
            at += 1
        start, n = piece.start, at
        while n < len(right) and right[n].overlaps(piece):
            rest.append(OffsetRange(piece.source, start, max(start, right[n].start)))
            start, n = max(start, right[n].end), n + 1
        rest.append(OffsetRange(piece.source, min(start, piece.end), piece.end))
    return coalesce(rest)


class OffsetSet:
    """Offset ranges, joined where they touch, to look up what they hold."""

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        joined = groupby(coalesce(ranges), key=lambda r: r.source)
        self._ranges = {source: [(piece.start, piece.end) for piece in pieces] for source, pieces in joined}

    def holds(self, source: KafkaPartition, start: int, end: int) -> bool:
        """Return whether all offsets from `start` to before `end` are in it."""
        ranges = self._ranges.get(source, [])
        at = bisect_right(ranges, start, key=itemgetter(0))
        return at > 0 and end <= ranges[at - 1][1]
