"""The pieces of a claim's landings, one bound at a time, where all were read under one leader epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from onceover.model.claim import ClaimedLanding
from onceover.model.offsets import KafkaPartition, OffsetRange


@dataclass(frozen=True, slots=True)
class Pieces:
    """The landings' IDs, without releases, as disjoint pieces: each landing is a union of them, so digests summed once
    by piece add up to any landing's, however they overlap.

    `ranges` are cut at all bounds, in order. `exact` are the IDs that a single landing with exact IDs holds: one
    piece for each such landing and Kafka partition, for there may be as many ranges as records.
    """

    ranges: tuple[OffsetRange, ...]
    exact: Mapping[tuple[int, KafkaPartition], tuple[OffsetRange, ...]]


def split_ranges(landings: Iterable[ClaimedLanding]) -> Pieces:
    """Cut the landings' offset ranges and exact IDs at each other's bounds."""
    depths: dict[KafkaPartition, Counter[int]] = {}  # by bound, how many landings more hold what follows
    exact_ids: dict[KafkaPartition, Counter[int]] = {}  # likewise, the sum of the IDs of those with exact IDs
    for landing in landings:
        held = [] if landing.release else landing.exact or [offsets for offsets, _ in landing.parts]
        for offsets in held:
            depth, ids = depths.setdefault(offsets.source, Counter()), exact_ids.setdefault(offsets.source, Counter())
            number = landing.landing_id if landing.exact else 0
            for bound, step in ((offsets.start, 1), (offsets.end, -1)):
                depth[bound] += step
                ids[bound] += step * number
    ranges: list[OffsetRange] = []
    exact: dict[tuple[int, KafkaPartition], list[OffsetRange]] = {}
    for source, at in sorted(depths.items()):
        deep = exact_id = 0
        for start, end in pairwise(sorted(at)):
            deep += at[start]
            exact_id += exact_ids[source][start]
            if deep == 1 and exact_id:
                exact.setdefault((exact_id, source), []).append(OffsetRange(source, start, end))
            elif deep:
                ranges.append(OffsetRange(source, start, end))
    return Pieces(tuple(ranges), {key: tuple(pieces) for key, pieces in exact.items()})
