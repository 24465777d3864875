"""Kafka partitions that are stopped before some offsets, while ingest goes on with the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from onceover.kafka import TopicFacts
from onceover.model.offsets import KafkaPartition, OffsetRange, subtract


@dataclass(frozen=True, slots=True)
class StoppedPartitions:
    """The ranges before which a Kafka partition is stopped, and where each log ends therefore, as at one look."""

    ranges: tuple[OffsetRange, ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def at(cls, ranges: Iterable[OffsetRange], reading: Mapping[int, int]) -> Self:
        """Return those of these ranges, where reading continues at these offsets by Kafka partition."""
        stopped = tuple(ranges)
        ends: dict[int, int] = {}
        for each in stopped:
            p = each.source.kafka_partition
            end = max(each.start, reading.get(p, 0))
            ends[p] = min(end, ends.get(p, end))
        return cls(stopped, ends)

    @property
    def sources(self) -> Collection[KafkaPartition]:
        return {each.source for each in self.ranges}

    def limit(self, facts: TopicFacts) -> TopicFacts:
        """Return these facts with logs that end where a Kafka partition is stopped."""
        return replace(facts, end={p: min(end, self.ends.get(p, end)) for p, end in facts.end.items()})

    def leave_out(self, ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
        """Return these ranges without the offsets before which a Kafka partition is stopped."""
        return subtract(ranges, self.ranges)
