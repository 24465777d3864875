"""The IDs of releases as disjoint pieces, which other landings' bounds do not cut."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from onceover.model.claim import ClaimedLanding
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.release import Release


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
