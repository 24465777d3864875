"""Pieces: the elementary offset ranges of a window's landings, by which each record is summed once for all of them.

landing 1   [0 ........ 50)
landing 2          [30 ......... 80)
pieces      0      1    2         a landing is a union of pieces, so their sums add up to its own
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.dedup import mark_changes
from onceover.lines.ranges import NumberedRanges

SEVERAL, UNLANDED = -1, -2  # owners


@dataclass(frozen=True, slots=True)
class LandedRanges:
    """The offset ranges of a window's landings, in any order, which may overlap; `landing` numbers each one's landing
    from 0. Where `is_exact`, the landing has exact IDs: perhaps as many ranges as records. Releases are not here."""

    landing: np.ndarray
    source: np.ndarray
    start: np.ndarray
    end: np.ndarray
    is_exact: np.ndarray


@dataclass(frozen=True, slots=True)
class LandedPieces:
    """The pieces in order. Their number in `ranges` is the place of the first piece that is summed together with them:
    of those that only one landing with exact IDs holds, in one Kafka partition. `owner` is the landing that holds a
    piece, SEVERAL, or UNLANDED for a decided ID that none holds; `is_decided` marks the pieces of decided IDs."""

    ranges: NumberedRanges
    owner: np.ndarray
    is_decided: np.ndarray

    def __len__(self) -> int:
        return len(self.ranges)


def cut_pieces(landed: LandedRanges, decided: NumberedRanges) -> LandedPieces:
    """Cut the ranges at each other's bounds. Each decided ID is a piece of its own, whether or not it landed."""
    ranges, ids = len(landed.landing), len(decided)
    bound = np.concatenate((landed.start, landed.end, decided.start, decided.end))
    source = np.concatenate((landed.source, landed.source, decided.source, decided.source))
    step = np.zeros((len(bound), 3), np.int64)  # landings that hold what follows, the sum of their numbers, decided IDs
    step[:ranges, 0], step[ranges : 2 * ranges, 0] = 1, -1
    step[:ranges, 1], step[ranges : 2 * ranges, 1] = landed.landing, -landed.landing
    step[2 * ranges : 2 * ranges + ids, 2], step[2 * ranges + ids :, 2] = 1, -1
    order = np.lexsort((bound, source))
    bound, source = bound[order], source[order]
    first = np.flatnonzero(mark_changes(source, bound))
    bound, source = bound[first], source[first]
    depth, owner, is_decided = (
        np.cumsum(np.add.reduceat(step[order], first, axis=0), axis=0).T if len(first) else step.T
    )
    held = np.flatnonzero((depth > 0) | (is_decided > 0))
    owner = np.where(depth == 1, owner, np.where(depth > 1, SEVERAL, UNLANDED))[held]
    source, is_decided = source[held], is_decided[held] > 0
    pieces = NumberedRanges(source, bound[held], bound[held + 1], np.arange(len(held)))
    exact = np.zeros(max(landed.landing, default=-1) + 1, bool)
    exact[landed.landing] = landed.is_exact
    alone = np.flatnonzero((owner >= 0) & ~is_decided)
    alone = alone[exact[owner[alone]]]
    together = alone[np.lexsort((alone, source[alone], owner[alone]))]
    begins = mark_changes(owner[together], source[together])
    pieces.number[together] = together[begins][np.cumsum(begins) - 1]
    return LandedPieces(pieces, owner, is_decided)
