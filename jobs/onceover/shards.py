"""Offset ranges cut into shards before anything is read: each core reads its own, and no record moves for balance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import pairwise
from math import lcm
from typing import Final

from onceover.errors import UsageError
from onceover.offsets import OffsetRange

CAP_PER_CORE: Final = 4
"""Times the cores: into so many shards the skew-aware rule cuts one range at most."""
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


def one_to_one(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """A shard a range, as Kafka's partitions are: with fewer of them than cores, cores are idle."""
    return [whole for whole in ranges if len(whole)]


def by_lcm(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """spark_num = lcm(source_num, core_num) shards, map_num = spark_num / source_num a range: a multiple of the cores,
    so that ranges of about equal size keep all of them busy to the end."""
    sources = [whole for whole in ranges if len(whole)]
    if not sources:
        return []
    return [shard for whole in sources for shard in cut(whole, _map_num(len(sources), cores))]


def by_backlog(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """As many shards, each range cut in proportion to its size: at least one, at most CAP_PER_CORE times the cores.

    Each further shard goes to the range whose shards are the largest, so the largest shard is as small as it can be.
    """
    sources = [whole for whole in ranges if len(whole)]
    if not sources:
        return []
    sizes, cap, shards = [len(whole) for whole in sources], CAP_PER_CORE * cores, [1] * len(sources)

    def priority(position: int) -> float:
        """Less is first: what its largest shard holds, unless it may not be cut any further."""
        is_full = shards[position] >= min(cap, sizes[position])
        return 0.0 if is_full else -sizes[position] / shards[position]

    waiting = [(priority(position), position) for position in range(len(sources))]
    heapify(waiting)
    for _ in range(len(sources) * (_map_num(len(sources), cores) - 1)):
        first, position = waiting[0]
        if first == 0.0:
            break
        shards[position] += 1
        heapreplace(waiting, (priority(position), position))
    return [shard for whole, number in zip(sources, shards, strict=True) for shard in cut(whole, number)]


def _map_num(sources: int, cores: int) -> int:
    return min(lcm(sources, cores) // sources, -(-MOST_PER_CORE * cores // sources))


SHARDING: Final[Mapping[str, Callable[[Sequence[OffsetRange], int], list[OffsetRange]]]] = {
    "lcm": by_lcm,
    "backlog": by_backlog,
    "none": one_to_one,
}


def sharded(rule: str, ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """The ranges cut by that rule of SHARDING for that many cores. Raises UsageError for less than one core."""
    if cores < 1:
        raise UsageError(f"{cores} cores read nothing")
    return SHARDING[rule](ranges, cores)
