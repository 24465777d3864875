"""Step 1 of a batch: where each Kafka partition stands, and which offset ranges are read next."""

from __future__ import annotations

from collections.abc import Mapping

from onceover.errors import OffsetRangeError
from onceover.offsets import KafkaPartition, OffsetRange


def starting_offsets(
    stored: Mapping[int, int], first: Mapping[int, int], earliest: Mapping[int, int], end: Mapping[int, int]
) -> dict[int, int]:
    """The next offset to read of each Kafka partition: the stored one, or that in `first` where none is stored.

    A stored offset below the log's start moves up to it (the ledger's frontier stays, so the loss shows as a hole);
    one beyond the log's end raises OffsetRangeError, because the log was truncated or the store is another topic's.
    """
    starts: dict[int, int] = {}
    for kafka_partition in sorted(end):
        at = stored.get(kafka_partition, first[kafka_partition])
        if at > end[kafka_partition]:
            raise OffsetRangeError(
                f"Kafka partition {kafka_partition}: the stored offset {at} lies beyond the log's end "
                f"{end[kafka_partition]}; the log was truncated, or the consumer group is another topic's"
            )
        starts[kafka_partition] = max(at, earliest[kafka_partition])
    return starts


def next_ranges(
    generation: str, starts: Mapping[int, int], end: Mapping[int, int], most: int
) -> tuple[OffsetRange, ...]:
    """At most `most` offsets, shared evenly; what one Kafka partition does not use goes to those with a backlog."""
    backlog = {p: end[p] - starts[p] for p in sorted(starts) if end[p] > starts[p]}
    left, take = most, {}
    # Smallest backlog first: whatever it leaves of its even share is there for the larger ones.
    for position, kafka_partition in enumerate(sorted(backlog, key=lambda p: (backlog[p], p))):
        share = -(-left // (len(backlog) - position))
        take[kafka_partition] = min(backlog[kafka_partition], share)
        left -= take[kafka_partition]
    return tuple(
        OffsetRange(KafkaPartition(generation, p), starts[p], starts[p] + count)
        for p, count in sorted(take.items())
        if count
    )
