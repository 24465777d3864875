"""The IDs of a claim's landings as disjoint pieces, by which raw is summed once for all of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

from onceover.model.claim import ClaimedLanding
from onceover.model.contract import Cutovers
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.release import Release


@dataclass(frozen=True, slots=True)
class Pieces:
    """The landings' IDs, without releases, as disjoint pieces: each landing is a union of them, so digests summed once
    by piece add up to any landing's, however they overlap.

    `ranges` are cut at all bounds, in order. `exact` are the IDs that a single landing with exact IDs holds: one
    piece for each such landing and Kafka partition, for there may be as many ranges as records.
    """

    ranges: tuple[OffsetRange, ...]
    exact: Mapping[tuple[int, KafkaPartition], tuple[OffsetRange, ...]]

    def list_versions(self, cutovers: Cutovers, released: Iterable[ReleasePiece]) -> list[int]:
        """Return the contract versions of these IDs and of the released ones, in ascending order."""
        versions = cutovers.cut_by_version((*self.ranges, *chain.from_iterable(self.exact.values()))).keys()
        return sorted({*versions, *(piece.release.version for piece in released)})


def split_ranges(landings: Iterable[ClaimedLanding], decided: Iterable[OffsetRange] = ()) -> Pieces:
    """Cut the landings' offset ranges and exact IDs at each other's bounds. Each decided ID is a range of its own,
    whether or not it landed."""
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
    for offsets in decided:
        depth = depths.setdefault(offsets.source, Counter())
        exact_ids.setdefault(offsets.source, Counter())
        depth[offsets.start] += 1
        depth[offsets.end] -= 1
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


@dataclass(frozen=True, slots=True)
class ReleasePiece:
    """The IDs of a release within `span`, which no bound of another landing cuts."""

    span: OffsetRange
    ids: tuple[OffsetRange, ...]
    release: Release


def list_releases(landings: Iterable[ClaimedLanding], ranges: Iterable[OffsetRange]) -> list[ReleasePiece]:
    """Cut each release, in order, at the bounds of `ranges`, which other landings read: one that read it again under
    the same contract, after a rebuild of the ledger, is a union of ranges and of such pieces."""
    releases = {landing.release.batch_id: landing.release for landing in landings if landing.release}
    bounds: dict[KafkaPartition, set[int]] = {}
    for piece in ranges:
        bounds.setdefault(piece.source, set()).update((piece.start, piece.end))
    ordered = {source: sorted(cuts) for source, cuts in bounds.items()}
    pieces: list[ReleasePiece] = []
    for _, release in sorted(releases.items()):
        for source, group in groupby(release.ranges, key=lambda r: r.source):
            ids = _cut(list(group), ordered.get(source, []))
            for _, together in groupby(ids, key=lambda r: bisect_right(ordered.get(source, []), r.start)):
                held = tuple(together)
                pieces.append(ReleasePiece(OffsetRange(source, held[0].start, held[-1].end), held, release))
    return pieces


def _cut(ids: Iterable[OffsetRange], bounds: Sequence[int]) -> Iterator[OffsetRange]:
    for whole in ids:
        inside = bounds[bisect_right(bounds, whole.start) : bisect_left(bounds, whole.end)]
        for start, end in pairwise((whole.start, *inside, whole.end)):
            yield OffsetRange(whole.source, start, end)
