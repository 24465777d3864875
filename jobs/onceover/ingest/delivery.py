"""What a batch's reader delivered: its shards joined to the planned ranges, each of them exactly once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from onceover.errors import TransientError
from onceover.kafka.shard_read import ShardRead
from onceover.lines.line_format import MAX_EVENT_MS
from onceover.model.batch import RangeRead
from onceover.model.log_history import order_epochs
from onceover.model.offsets import OffsetRange
from onceover.model.window import from_ms


def join_shards(
    ranges: Sequence[OffsetRange],
    planned: Iterable[OffsetRange],
    shards: Iterable[ShardRead],
    newest_ms: Mapping[int, int],
) -> list[RangeRead]:
    """Return each of these disjoint ranges as it was delivered. `newest_ms` are the largest event times by Kafka
    partition: the last range of each states it, as it counts once the frontier has passed all of them.

    Raise TransientError unless each of the `planned` shards was read to its end once: Spark may run a task again.
    """
    read = sorted(shards, key=lambda shard: (shard.kafka_partition, shard.start))
    ended = [(shard.kafka_partition, shard.start) for shard in read]
    if ended != sorted((shard.source.kafka_partition, shard.start) for shard in planned):
        raise TransientError(
            f"the reader reported the ends of {len(ended)} shards, which are not those that were planned: Spark lost "
            "or repeated rows of a task; the batch does not count and is read again"
        )
    in_order = sorted(ranges)
    totals: dict[OffsetRange, ShardRead] = {}
    for shard in read:
        at = bisect_right(in_order, (shard.kafka_partition, shard.start), key=_get_start) - 1
        earlier = totals.get(in_order[at])
        totals[in_order[at]] = shard if earlier is None else earlier + shard
    last = {each.source: each for each in in_order}
    return [
        _make_range(
            each, totals.get(each), newest_ms.get(each.source.kafka_partition) if last[each.source] == each else None
        )
        for each in ranges
    ]


def _get_start(offsets: OffsetRange) -> tuple[int, int]:
    return offsets.source.kafka_partition, offsets.start


def _make_range(offsets: OffsetRange, total: ShardRead | None, newest_ms: int | None) -> RangeRead:
    read = total or ShardRead(offsets.source.kafka_partition, offsets.start)
    return RangeRead(offsets, read.digest, _to_moment(newest_ms), _to_moment(read.oldest_ms), order_epochs(read.epochs))


def _to_moment(ms: int | None) -> datetime | None:
    return None if ms is None or ms > MAX_EVENT_MS else from_ms(ms)
