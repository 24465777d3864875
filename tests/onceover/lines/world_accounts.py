"""The accounts of worlds, as a repair would make them from the ledger, and what raw holds of their landings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from tests.onceover.lines.worlds import CONTRACTS, END, EPOCHS, START, World

from onceover.lines.accounts import Accounts
from onceover.lines.digest_sums import PieceSums
from onceover.lines.pieces import LandedPieces, LandedRanges, cut_pieces
from onceover.lines.ranges import EpochRanges, NumberedRanges, name_source, number_source
from onceover.model.digest import EMPTY, Digest
from onceover.model.log_history import NO_EPOCH
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, subtract

Sums = dict[tuple[int, KafkaPartition], Digest]


def _number(ranges: Iterable[OffsetRange]) -> NumberedRanges:
    return NumberedRanges.of((piece, 0) for piece in coalesce(ranges))


def list_landed(world: World) -> LandedRanges:
    blind = world.blind
    rows = [
        (n, number_source(r.source), r.start, r.end, NO_EPOCH if r.source in blind else span.leader_epoch, is_exact)
        for n, (spans, is_exact) in enumerate(world.landings)
        for span in spans
        for r in subtract([span.offsets], world.spare)
    ]
    landing, source, start, end, epoch, is_exact = np.array(rows, np.int64).reshape(-1, 6).T
    return LandedRanges(landing, source, start, end, epoch, is_exact.astype(bool))


def make_accounts(world: World) -> Accounts:
    released = [
        (piece, number) for number, ranges in enumerate(world.releases) for piece in subtract(ranges, world.spare)
    ]
    earlier = subtract(world.cutovers, world.released())
    beside = {epoch: _number(s.offsets for s in world.beside if s.leader_epoch == epoch) for epoch in EPOCHS}
    return Accounts(
        START,
        END,
        pieces=cut_pieces(list_landed(world)),
        contracts=tuple(name.encode() for name in CONTRACTS),
        newest=1,
        contract=NumberedRanges.of([*((r, 0) for r in earlier), *((r, 2) for r in world.released())]),
        released=NumberedRanges.of(released),
        accounted=_number(world.accounted),
        own=_number(world.own),
        beside=EpochRanges(beside),
        spare=_number(world.spare),
        blind=np.array(sorted(map(number_source, world.blind)), np.int64),
    )


def sum_landings(landed: LandedRanges, pieces: LandedPieces, counted: PieceSums, *, released: bool = False) -> Sums:
    """Return what raw holds of each landing: the records that it read, or those within its ranges that were
    `released`. Each of its ranges is a union of pieces."""
    sums: Sums = {}
    at = counted.piece
    for row, number in enumerate(landed.landing.tolist()):
        is_inside = (pieces.source == landed.source[row]) & (pieces.epoch == landed.epoch[row])
        is_inside &= (pieces.start >= landed.start[row]) & (pieces.end <= landed.end[row])
        wanted = (at >= 0) & np.append(is_inside, False)[at] & ((counted.release >= 0) == released)
        _add(sums, (number, name_source(int(landed.source[row]))), counted.sums[wanted])
    return sums


def sum_releases(counted: PieceSums) -> Sums:
    """Return what raw holds of each release."""
    sums: Sums = {}
    for row in np.flatnonzero(counted.release >= 0):
        _add(sums, (int(counted.release[row]), name_source(int(counted.source[row]))), counted.sums[[row]])
    return sums


def _add(sums: Sums, key: tuple[int, KafkaPartition], rows: np.ndarray) -> None:
    if len(rows):
        sums[key] = sums.get(key, EMPTY) + Digest(*rows.sum(axis=0).tolist())
