"""Step 1 of a batch: where each Kafka partition stands, and which offset ranges are read next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onceover.model.offsets import KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class Start:
    """Where one Kafka partition's reading goes on: `at`. Offsets `[origin, at)` were never read and are no longer in
    the log; `truncated_from` is the stored offset where the log ends before it, None where it does not.
    """

    at: int
    origin: int
    truncated_from: int | None = None


def starting_offsets(
    stored: Mapping[int, int], first: Mapping[int, int], earliest: Mapping[int, int], end: Mapping[int, int]
) -> dict[int, Start]:
    """Where reading goes on in each Kafka partition of the log `[earliest, end]`: at the stored offset, or at that in
    `first` where none is stored; moved into the log where it lies outside."""
    starts: dict[int, Start] = {}
    for kafka_partition in sorted(end):
        low, high = earliest[kafka_partition], end[kafka_partition]
        asked = stored.get(kafka_partition, first[kafka_partition])
        at = min(max(asked, low), high)
        starts[kafka_partition] = Start(at, min(asked, at), asked if asked > high else None)
    return starts


def next_ranges(
    generation: str, starts: Mapping[int, int], end: Mapping[int, int], most: int, *, fair: bool = True
) -> tuple[OffsetRange, ...]:
    """At most `most` offsets, shared evenly; what one Kafka partition does not use goes to those with a backlog, unless
    not `fair`: then it is left. Where there is not one for each, those with the largest backlog get one."""
    backlog = {p: end[p] - starts[p] for p in sorted(starts) if end[p] > starts[p]}
    chosen = sorted(backlog, key=lambda p: (-backlog[p], p))[:most]
    each, left, take = max(1, most // max(1, len(starts))), most, {}
    # Smallest backlog first: whatever it leaves of its even share is there for the larger ones.
    for position, kafka_partition in enumerate(reversed(chosen)):
        share = -(-left // (len(chosen) - position)) if fair else each
        take[kafka_partition] = min(backlog[kafka_partition], share)
        left -= take[kafka_partition]
    return tuple(
        OffsetRange(KafkaPartition(generation, p), starts[p], starts[p] + count) for p, count in sorted(take.items())
    )
