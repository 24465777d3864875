"""Step 1 of a batch: where each Kafka partition stands, and which offset ranges are read next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, lcm
from typing import Final

from onceover.errors import UsageError
from onceover.model.offsets import KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class Start:
    """Where one Kafka partition's reading goes on: `at`. Offsets `[origin, at)` were never read and are no longer in
    the log; `truncated_from` is the stored offset where the log ends before it, None where it does not.
    """

    at: int
    origin: int
    truncated_from: int | None = None


def compute_starts(
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


def plan_ranges(
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


# Offset ranges cut into shards before anything is read: each core reads its own, and no record moves for balance.

PER_CORE: Final = 2
"""Shards that the skew-aware rule makes for each core: one is too few where ranges differ, and four took longer on two
cores (`make bench NAME=sharding`)."""
LEAST_SHARD: Final = 1_000
"""Offsets: a shard costs a task and a client, about as much as reading so many."""
MOST_PER_CORE: Final = 16
"""Times the cores: about so many shards are made at most. 63 ranges on 16 cores would be 1,008, and each is a task."""


def cut(offset_range: OffsetRange, shards: int) -> list[OffsetRange]:
    """That many touching shards in order, their sizes at most one apart, the larger first; fewer where there are fewer
    offsets, for none is empty."""
    shards = min(shards, len(offset_range))
    if shards < 1:
        return []
    size, larger = divmod(len(offset_range), shards)
    ends = [offset_range.start + size * n + min(n, larger) for n in range(shards + 1)]
    return [OffsetRange(offset_range.source, low, high) for low, high in pairwise(ends)]


def keep_ranges(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """A shard a range, as Kafka's partitions are: with fewer of them than cores, cores are idle."""
    return [whole for whole in ranges if len(whole)]


def cut_by_lcm(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """spark_num = lcm(source_num, core_num) shards, map_num = spark_num / source_num a range: a multiple of the cores,
    so that ranges of about equal size keep all of them busy to the end."""
    sources = [whole for whole in ranges if len(whole)]
    if not sources:
        return []
    return [shard for whole in sources for shard in cut(whole, _map_num(len(sources), cores))]


def cut_by_backlog(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """Each range cut in proportion to its size: at least one shard, at most PER_CORE times the cores, none of less than
    LEAST_SHARD offsets. So a range that is larger than the rest keeps no core waiting for its end."""
    sources = [whole for whole in ranges if len(whole)]
    size = max(LEAST_SHARD, sum(map(len, sources)) / (PER_CORE * cores))
    return [shard for whole in sources for shard in cut(whole, ceil(len(whole) / size))]


def _map_num(sources: int, cores: int) -> int:
    return min(lcm(sources, cores) // sources, -(-MOST_PER_CORE * cores // sources))


SHARDING: Final[Mapping[str, Callable[[Sequence[OffsetRange], int], list[OffsetRange]]]] = {
    "lcm": cut_by_lcm,
    "backlog": cut_by_backlog,
    "none": keep_ranges,
}


def cut_into_shards(rule: str, ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """The ranges cut by that rule of SHARDING for that many cores. Raises UsageError for less than one core."""
    if cores < 1:
        raise UsageError(f"{cores} cores read nothing")
    return SHARDING[rule](ranges, cores)
