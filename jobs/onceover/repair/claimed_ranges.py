"""The ranges of a claimed window's landings by leader epoch, and the IDs of releases as disjoint pieces.

Where a landing of a Kafka partition has no epochs, as leaders changed while its batch was read, all records of that
Kafka partition are judged by their IDs alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from onceover.model.claim import ClaimedLanding
from onceover.model.log_history import NO_EPOCH
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.release import Release

BLIND: Final = NO_EPOCH
"""The epoch of all records of a Kafka partition that is judged by IDs alone."""


def find_blind(landings: Iterable[ClaimedLanding]) -> frozenset[KafkaPartition]:
    """Return the Kafka partitions whose records are judged by their IDs alone."""
    readings = (reading for landing in landings if not landing.release for reading in landing.readings)
    return frozenset(each.offsets.source for each in readings if each.leader_epoch is None)


def list_readings(landing: ClaimedLanding, blind: Collection[KafkaPartition]) -> list[tuple[OffsetRange, int]]:
    """Return the landing's ranges, each with its leader epoch, or BLIND."""
    return [
        (each.offsets, BLIND if each.leader_epoch is None or each.offsets.source in blind else each.leader_epoch)
        for each in landing.readings
    ]


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
