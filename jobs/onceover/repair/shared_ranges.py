"""Offsets that two batches landed: only their IDs can count in two windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce


def find_shared(claimed: Iterable[ClaimedWindow]) -> tuple[OffsetRange, ...]:
    """Return the offsets that two batches or more landed, by the landings of these windows. A batch reads an offset
    once, so that an ID of its own is in one window."""
    landings = chain.from_iterable(claim.landings for claim in claimed)
    by_batch: dict[tuple[bool, int], list[OffsetRange]] = {}
    for landing in landings:
        by_batch.setdefault(_name_batch(landing), []).extend(landing.ids)
    bounds: dict[KafkaPartition, list[tuple[int, int]]] = {}
    for ids in by_batch.values():
        for piece in coalesce(ids):
            bounds.setdefault(piece.source, []).extend(((piece.start, 1), (piece.end, -1)))
    return coalesce(chain.from_iterable(_cover_twice(source, of_source) for source, of_source in bounds.items()))


def _name_batch(landing: ClaimedLanding) -> tuple[bool, int]:
    return (False, landing.landing_id) if landing.batch_id is None else (True, landing.batch_id)


def _cover_twice(source: KafkaPartition, bounds: list[tuple[int, int]]) -> Iterator[OffsetRange]:
    """Yield what lies in two ranges or more, by their starts (1) and ends (-1)."""
    bounds.sort()  # at one offset ends come first, so that ranges that only touch share nothing
    depth = begun = 0
    for offset, step in bounds:
        depth += step
        if step == 1 and depth == 2:
            begun = offset
        elif step == -1 and depth == 1 and begun < offset:
            yield OffsetRange(source, begun, offset)
