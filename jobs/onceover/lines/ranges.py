"""Offset ranges in arrays: in which of many ranges each of many IDs lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from onceover.model.offsets import KafkaPartition, OffsetRange

_PARTITION_BITS = 17  # a Kafka partition has five digits
_PARTITION = (1 << _PARTITION_BITS) - 1


def number_sources(generation: np.ndarray, kafka_partition: np.ndarray) -> np.ndarray:
    """Return one number for each pair; numbers are in the order of KafkaPartitions."""
    numbers: np.ndarray = (generation.astype(np.int64) << _PARTITION_BITS) | kafka_partition
    return numbers


def find_kafka_partitions(numbers: np.ndarray) -> np.ndarray:
    """Return the Kafka partition of each number that `number_sources` gave."""
    partitions: np.ndarray = (numbers & _PARTITION).astype(np.int32)
    return partitions


def number_source(source: KafkaPartition) -> int:
    return int(source.generation, 16) << _PARTITION_BITS | source.kafka_partition


def name_source(number: int) -> KafkaPartition:
    """Return the KafkaPartition of a number that `number_source` gave."""
    return KafkaPartition(f"{number >> _PARTITION_BITS:08x}", number & _PARTITION)


@dataclass(frozen=True, slots=True)
class NumberedRanges:
    """Disjoint offset ranges in the order of their IDs, each with a number, which several may have."""

    source: np.ndarray
    start: np.ndarray
    end: np.ndarray
    number: np.ndarray

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def of(cls, ranges: Iterable[tuple[OffsetRange, int]]) -> NumberedRanges:
        """Return the ranges that are not empty."""
        rows = sorted((number_source(r.source), r.start, r.end, n) for r, n in ranges if len(r))
        table = np.array(rows, np.int64).reshape(-1, 4)
        return cls(*np.ascontiguousarray(table.T))

    def find(self, source: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Return the number of the range that holds each ID, -1 where none does. The IDs are in order."""
        found = np.full(len(source), -1, np.int32)
        for rows, of_source in self.match_sources(source):
            wanted, first = offset[rows], of_source.start
            place = first + np.searchsorted(self.start[of_source], wanted, "right") - 1
            held = (place >= first) & (wanted < self.end[place])
            found[rows] = np.where(held, self.number[place], -1)
        return found

    def match_sources(self, source: np.ndarray) -> Iterator[tuple[slice, slice]]:
        """Yield, for each source that has ranges, where it is in these sources, which are in order, and in the
        ranges."""
        if not len(self):
            return
        firsts = np.flatnonzero(np.diff(self.source, prepend=-1))
        known = self.source[firsts]
        begin, end = np.searchsorted(source, known), np.searchsorted(source, known, "right")
        for n, (first, after) in enumerate(pairwise([*firsts.tolist(), len(self)])):
            if begin[n] < end[n]:
                yield slice(begin[n], end[n]), slice(first, after)


NO_RANGES = NumberedRanges.of(())


@dataclass(frozen=True, slots=True)
class EpochRanges:
    """Offset ranges of records that were read under one leader epoch, disjoint within each epoch."""

    of_epoch: Mapping[int, NumberedRanges] = field(default_factory=dict)

    def find(self, source: np.ndarray, offset: np.ndarray, epoch: np.ndarray) -> np.ndarray:
        """Return the number of the range that holds each record, -1 where none does. The IDs are in order."""
        found = np.full(len(source), -1, np.int32)
        for each, ranges in self.of_epoch.items():
            rows = np.flatnonzero(epoch == each)
            if len(rows) == len(source):
                return ranges.find(source, offset)
            found[rows] = ranges.find(source[rows], offset[rows])
        return found
