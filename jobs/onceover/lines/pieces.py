"""Pieces: the elementary offset ranges of a window's landings, by which each record is summed once for all of them.

landing 1   [0 ........ 50)
landing 2          [30 ......... 80)
pieces      0      1    2         a landing is a union of pieces, so their sums add up to its own

What a log holds under an offset after it was cut has another leader epoch, and is in other pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.dedup import mark_changes
from onceover.lines.ranges import EpochRanges, NumberedRanges

SEVERAL = -1  # an owner


@dataclass(frozen=True, slots=True)
class LandedRanges:
    """The offset ranges of a window's landings, each read under one leader epoch, in any order, which may overlap;
    `landing` numbers each one's landing from 0. Where `is_exact`, the landing has several ranges of a Kafka partition:
    perhaps as many as records. Releases are not here."""

    landing: np.ndarray
    source: np.ndarray
    start: np.ndarray
    end: np.ndarray
    epoch: np.ndarray
    is_exact: np.ndarray

    def select(self, rows: np.ndarray) -> LandedRanges:
        return LandedRanges(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class LandedPieces:
    """The pieces, epoch by epoch and in order. A piece's number in `ranges` is the place of the first one that is
    summed together with it: of those that only one landing with exact ranges holds, in one Kafka partition and epoch.
    `owner` is the landing that holds a piece, or SEVERAL."""

    ranges: EpochRanges
    source: np.ndarray
    start: np.ndarray
    end: np.ndarray
    epoch: np.ndarray
    owner: np.ndarray

    def __len__(self) -> int:
        return len(self.owner)


def cut_pieces(landed: LandedRanges) -> LandedPieces:
    """Cut the ranges of each epoch at each other's bounds."""
    cut: dict[int, NumberedRanges] = {}
    owners: list[np.ndarray] = [np.empty(0, np.int64)]
    count = 0
    for epoch in np.unique(landed.epoch).tolist():
        cut[epoch], owner = _cut(landed.select(np.flatnonzero(landed.epoch == epoch)), count)
        owners.append(owner)
        count += len(owner)
    none = np.empty(0, np.int64)
    source, start, end = (
        np.concatenate([none, *(getattr(ranges, name) for ranges in cut.values())])
        for name in ("source", "start", "end")
    )
    epochs = np.repeat(np.array(list(cut), np.int64), [len(each) for each in cut.values()])
    return LandedPieces(EpochRanges(cut), source, start, end, epochs, np.concatenate(owners))


def _cut(landed: LandedRanges, first_number: int) -> tuple[NumberedRanges, np.ndarray]:
    """Return the pieces of one epoch, numbered from there on, and their owners."""
    bound, source = np.concatenate((landed.start, landed.end)), np.concatenate((landed.source, landed.source))
    ones = np.ones(len(landed.landing), np.int64)
    # landings that hold what follows, and the sum of their numbers
    step = np.stack((np.concatenate((ones, -ones)), np.concatenate((landed.landing, -landed.landing))), axis=1)
    order = np.lexsort((bound, source))
    bound, source = bound[order], source[order]
    first = np.flatnonzero(mark_changes(source, bound))
    bound, source = bound[first], source[first]
    depth, owner = np.cumsum(np.add.reduceat(step[order], first, axis=0), axis=0).T
    held = np.flatnonzero(depth > 0)
    owner, source = np.where(depth == 1, owner, SEVERAL)[held], source[held]
    number = np.arange(first_number, first_number + len(held))
    exact = np.zeros(max(landed.landing) + 1, bool)
    exact[landed.landing] = landed.is_exact
    alone = np.flatnonzero(owner >= 0)
    alone = alone[exact[owner[alone]]]
    together = alone[np.lexsort((alone, source[alone], owner[alone]))]
    begins = mark_changes(owner[together], source[together])
    number[together] = number[together[begins][np.cumsum(begins) - 1]]
    return NumberedRanges(source, bound[held], bound[held + 1], number), owner
