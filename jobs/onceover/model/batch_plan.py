"""The plan of a batch: the next offset of each Kafka partition, the ranges to read, and their shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from math import ceil, lcm
from typing import Final

from onceover.errors import UsageError
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce

MAX_READ_AGAIN: Final = 100
"""Ranges that one batch reads again: each takes 50 ms to read, and fresh records wait meanwhile."""


@dataclass(frozen=True, slots=True)
class Start:
    """The offset `at` where reading of one Kafka partition continues. Offsets `[origin, at)` were never read and are no
    longer in the log; `truncated_from` is the stored offset if the log ends before it, else None."""

    at: int
    origin: int
    truncated_from: int | None = None


def compute_starts(
    stored: Mapping[int, int],
    first: Mapping[int, int],
    earliest: Mapping[int, int],
    end: Mapping[int, int],
    high: Mapping[int, int] | None = None,
) -> dict[int, Start]:
    """Return where reading continues in each Kafka partition of the log `[earliest, end]`: at the stored offset, else
    at the one in `first`; an offset outside the log is moved to the log's nearer end. Up to `high` the log holds
    records that an open transaction hides: it was not truncated before them."""
    starts: dict[int, Start] = {}
    for kafka_partition in sorted(end):
        low, log_end = earliest[kafka_partition], end[kafka_partition]
        offset = stored.get(kafka_partition, first[kafka_partition])
        at = min(max(offset, low), log_end)
        is_truncated = offset > max(log_end, (high or {}).get(kafka_partition, 0))
        starts[kafka_partition] = Start(at, min(offset, at), offset if is_truncated else None)
    return starts


def plan_ranges(
    generation: str, starts: Mapping[int, int], end: Mapping[int, int], most: int, *, fair: bool = True
) -> tuple[OffsetRange, ...]:
    """Return ranges of at most `most` offsets, shared evenly. If `fair`, the unused share of a Kafka partition goes to
    those with a backlog. If `most` is below their number, those with the largest backlog get one offset each."""
    backlog = {p: end[p] - starts[p] for p in sorted(starts) if end[p] > starts[p]}
    chosen = sorted(backlog, key=lambda p: (-backlog[p], p))[:most]
    each, left, take = max(1, most // max(1, len(starts))), most, {}
    # Smallest backlog first, so that the larger ones share what it leaves of its even share.
    for position, kafka_partition in enumerate(reversed(chosen)):
        share = -(-left // (len(chosen) - position)) if fair else each
        take[kafka_partition] = min(backlog[kafka_partition], share)
        left -= take[kafka_partition]
    return tuple(
        OffsetRange(KafkaPartition(generation, p), starts[p], starts[p] + count) for p, count in sorted(take.items())
    )


def plan_read_again(wanted: Iterable[OffsetRange], most: int) -> tuple[OffsetRange, ...]:
    """Return the first of the offsets to read again, at most `most` in about MAX_READ_AGAIN ranges: of each Kafka
    partition an even share, or of the first ones an offset each."""
    by_source = [list(pieces) for _, pieces in groupby(coalesce(wanted), key=lambda r: r.source)][:most]
    chosen: list[OffsetRange] = []
    for pieces in by_source:
        left = most // len(by_source)
        for piece in pieces[: max(1, MAX_READ_AGAIN // len(by_source))]:
            if left:
                chosen.append(OffsetRange(piece.source, piece.start, min(piece.end, piece.start + left)))
                left -= len(chosen[-1])
    return tuple(chosen)


def limit_replay(at: Mapping[int, int], end: Mapping[int, int], bounds: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the end of each Kafka partition's next range, before the first of its `bounds` beyond `at`.

    Bounds are where landed offsets begin or end. A range on one side of them has either landed whole or not at all: a
    replay after Kafka's compaction is then proved by the landings that read more.
    """
    return {
        p: min([high, *(bound for bound in bounds.get(p, ()) if bound > at.get(p, high))]) for p, high in end.items()
    }


# Offset ranges cut into shards before anything is read: each core reads its own, and no record moves for balance.

PER_CORE: Final = 2
"""Shards per core under the skew-aware rule: one is too few for ranges of different sizes, and four took longer on two
cores (`make bench NAME=sharding`)."""
LEAST_SHARD: Final = 1_000
"""Offsets of the smallest shard: a task and a client cost about as much as reading so many."""
MAX_PER_CORE: Final = 16
"""Shards per core, at most, under lcm: 63 ranges on 16 cores would make 1,008 shards, and each is a task."""


def cut(offset_range: OffsetRange, shards: int) -> list[OffsetRange]:
    """Cut a range into that many adjacent shards, in order, their sizes at most one apart, the larger first; into fewer
    if it has fewer offsets, so that no shard is empty."""
    shards = min(shards, len(offset_range))
    if shards < 1:
        return []
    size, larger = divmod(len(offset_range), shards)
    ends = [offset_range.start + size * n + min(n, larger) for n in range(shards + 1)]
    return [OffsetRange(offset_range.source, low, high) for low, high in pairwise(ends)]


def keep_ranges(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """Return one shard for each range: with fewer Kafka partitions than cores, some cores are idle."""
    return [whole for whole in ranges if len(whole)]


def cut_by_lcm(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """Cut into spark_num = lcm(source_num, core_num) shards, map_num = spark_num / source_num for each range: a
    multiple of the cores, so that ranges of about equal size keep all cores busy to the end."""
    sources = [whole for whole in ranges if len(whole)]
    if not sources:
        return []
    return [shard for whole in sources for shard in cut(whole, _map_num(len(sources), cores))]


def cut_by_backlog(ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """Cut each range in proportion to its size: into at least one shard, at most PER_CORE times the cores, each of
    about LEAST_SHARD offsets or more, so that no core waits for the end of a range that is larger than the rest."""
    sources = [whole for whole in ranges if len(whole)]
    most, total = PER_CORE * cores, sum(map(len, sources))
    size = max(Fraction(LEAST_SHARD), Fraction(total, most))  # a float's last bit can make one shard too many
    return [shard for whole in sources for shard in cut(whole, ceil(len(whole) / size))]


def _map_num(sources: int, cores: int) -> int:
    return min(lcm(sources, cores) // sources, -(-MAX_PER_CORE * cores // sources))


SHARDING: Final[Mapping[str, Callable[[Sequence[OffsetRange], int], list[OffsetRange]]]] = {
    "lcm": cut_by_lcm,
    "backlog": cut_by_backlog,
    "none": keep_ranges,
}


def cut_into_shards(rule: str, ranges: Sequence[OffsetRange], cores: int) -> list[OffsetRange]:
    """Cut the ranges by that rule of SHARDING for that many cores. Raise UsageError for less than one core."""
    if cores < 1:
        raise UsageError(f"{cores} cores cannot read a batch; give Spark at least one")
    return SHARDING[rule](ranges, cores)
