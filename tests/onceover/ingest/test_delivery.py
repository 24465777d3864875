"""A batch counts as delivered only if each planned shard ended once, by the reader's own words."""

from __future__ import annotations

import pytest

from onceover.errors import TransientError
from onceover.ingest.delivery import join_shards
from onceover.kafka.shard_read import ShardRead
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import from_ms

RANGES = [OffsetRange(KafkaPartition("00c0ffee", n), 10 * n, 10 * n + 10) for n in range(3)]
SHARDS = [OffsetRange(each.source, low, low + 5) for each in RANGES[:2] for low in (each.start, each.start + 5)]
READ = [
    ShardRead(0, 0, Digest(4, 1, 2, 3, 4), 700, {1: (0, 4)}),
    ShardRead(0, 5, Digest(5, 1, 1, 1, 1), 600, {1: (5, 6), 3: (7, 9)}),
    ShardRead(1, 10, Digest(5, 9, 9, 9, 9), None, {-1: (10, 14)}),
    ShardRead(1, 15),
]


def test_shards_are_joined_to_their_range_in_any_order() -> None:
    first, second, empty = join_shards(RANGES, SHARDS, reversed(READ), {0: 5000})
    assert (first.digest, first.oldest_record, first.max_event_time) == (
        Digest(9, 2, 3, 4, 5), from_ms(600), from_ms(5000))  # fmt: skip
    assert first.leader_epochs == ((1, 0), (3, 7))
    assert (second.digest, second.oldest_record, second.leader_epochs) == (Digest(5, 9, 9, 9, 9), None, ((-1, 10),))
    assert (empty.offsets, empty.digest.records, empty.max_event_time) == (RANGES[2], 0, None)


def test_ranges_of_one_kafka_partition_are_kept_apart() -> None:
    pieces = [OffsetRange(KafkaPartition("00c0ffee", 0), start, start + 5) for start in (20, 0, 7)]
    read = [ShardRead(0, start, Digest(n), n, {1: (start, start)}) for n, start in ((1, 0), (2, 7), (3, 20))]
    last, first, between = join_shards(pieces, pieces, read, {0: 5000})
    assert [each.digest.records for each in (first, between, last)] == [1, 2, 3]
    assert [each.leader_epochs for each in (first, between, last)] == [((1, 0),), ((1, 7),), ((1, 20),)]
    assert (first.max_event_time, between.max_event_time) == (None, None), "the frontier may stop before the last"
    assert last.max_event_time == from_ms(5000)


@pytest.mark.parametrize("read", [READ[:3], [*READ, READ[1]], [*READ[:3], READ[2]], [*READ[:3], ShardRead(1, 16)], []])
def test_shard_that_is_missing_or_there_twice_is_refused(read: list[ShardRead]) -> None:
    with pytest.raises(TransientError, match=f"the ends of {len(read)} shards, which are not those that were planned"):
        join_shards(RANGES, SHARDS, read, {})


def test_moments_beyond_the_calendar_of_raw_are_left_out() -> None:
    read = [ShardRead(0, 0, Digest(1, 1, 1, 1, 1), 10**14, {1: (0, 0)})]
    assert join_shards(RANGES[:1], RANGES[:1], read, {})[0].oldest_record is None
