"""The accounts of worlds, as a repair would make them from the ledger."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from tests.onceover.lines.worlds import CONTRACTS, END, START, World

from onceover.lines.accounts import BEYOND, KNOWN, Accounts, DecidedContents
from onceover.lines.pieces import LandedRanges, cut_pieces
from onceover.lines.ranges import NumberedRanges, number_source
from onceover.model.conflict import Decision
from onceover.model.offsets import OffsetRange, coalesce, intersect


def _number(ranges: list[OffsetRange] | None, number: int = 0) -> NumberedRanges:
    return NumberedRanges.of((piece, number) for piece in coalesce(ranges or ()))


def list_landed(world: World) -> LandedRanges:
    return _build((n, r, is_exact) for n, (ranges, is_exact) in enumerate(world.landings) for r in ranges)


def list_adopted(world: World) -> LandedRanges:
    """Return by landing the exact IDs of others that lie within its offset ranges."""
    exact = [r for ranges, is_exact in world.landings if is_exact for r in ranges]
    return _build(
        (n, r, False)
        for n, (ranges, is_exact) in enumerate(world.landings)
        if not is_exact
        for r in intersect(exact, ranges)
    )


def _build(landed: Iterable[tuple[int, OffsetRange, bool]]) -> LandedRanges:
    rows = [(n, number_source(r.source), r.start, r.end, is_exact) for n, r, is_exact in landed]
    landing, source, start, end, is_exact = np.array(rows, np.int64).reshape(-1, 5).T
    return LandedRanges(landing, source, start, end, is_exact.astype(bool))


def make_accounts(world: World) -> Accounts:
    decisions = [Decision(source, offset, kept) for (source, offset), kept in sorted(world.decisions.items())]
    decided = DecidedContents.of(decisions)
    released = [(piece, number) for number, ranges in enumerate(world.releases) for piece in ranges]
    own = None
    if world.known is not None:
        own = NumberedRanges.of([*((r, KNOWN) for r in world.known), *((r, BEYOND) for r in world.beyond)])
    earlier = _subtract(world.cutovers, world.released())
    return Accounts(
        START,
        END,
        pieces=cut_pieces(list_landed(world), decided.ids),
        contracts=tuple(name.encode() for name in CONTRACTS),
        newest=1,
        contract=NumberedRanges.of([*((r, 0) for r in earlier), *((r, 2) for r in world.released())]),
        released=NumberedRanges.of(released),
        decided=decided,
        accounted=None if world.accounted is None else _number(world.accounted),
        shared=_number(world.shared),
        listed=_number(world.shared),
        held=None if world.held is None else _number(world.held),
        own=own,
    )


def _subtract(ranges: list[OffsetRange], others: list[OffsetRange]) -> list[OffsetRange]:
    singles = [OffsetRange(r.source, n, n + 1) for r in ranges for n in range(r.start, r.end)]
    return [piece for piece in singles if not any(piece.overlaps(other) for other in others)]
