"""What raw holds of each landing, by the sums of its window's pieces, however landings overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.dedup import mark_changes
from onceover.lines.pieces import LandedPieces, LandedRanges
from onceover.lines.ranges import NumberedRanges
from onceover.lines.sums import WIDTH, PieceSums, sum_groups


@dataclass(frozen=True, slots=True)
class LandingSums:
    """Count and digest (n x 5) of what raw holds of each landing in each Kafka partition, in order."""

    landing: np.ndarray
    source: np.ndarray
    sums: np.ndarray


def sum_landings(
    landed: LandedRanges, pieces: LandedPieces, counted: PieceSums, *, released: bool = False
) -> LandingSums:
    """Return what raw holds of each landing without decided IDs: the records that it read, or those within its ranges
    that were `released`. Takes any ranges that begin and end where pieces do."""
    running = np.zeros((len(pieces) + 1, WIDTH), np.int64)
    wanted = (counted.piece >= 0) & ((counted.release >= 0) == released)
    wanted[wanted] = ~pieces.is_decided[counted.piece[wanted]]
    np.add.at(running, counted.piece[wanted] + 1, counted.sums[wanted])  # several releases may share a piece
    np.cumsum(running, axis=0, out=running)
    by_source = np.argsort(landed.source, kind="stable")
    landing, source, start, end = (
        each[by_source] for each in (landed.landing, landed.source, landed.start, landed.end)
    )
    sums = running[_count_before(pieces.ranges, source, end)] - running[_count_before(pieces.ranges, source, start)]
    order = np.lexsort((source, landing))
    landing, source = landing[order], source[order]
    first = np.flatnonzero(mark_changes(landing, source))
    return LandingSums(landing[first], source[first], sum_groups(sums[order], first))


def sum_releases(pieces: LandedPieces, counted: PieceSums) -> LandingSums:
    """Return what raw holds of each release without decided IDs, by its number."""
    of_release = np.flatnonzero(counted.release >= 0)
    inside = counted.piece[of_release] >= 0
    inside[inside] = pieces.is_decided[counted.piece[of_release[inside]]]
    rows = of_release[~inside]
    rows = rows[np.lexsort((counted.source[rows], counted.release[rows]))]
    release, source = counted.release[rows], counted.source[rows]
    first = np.flatnonzero(mark_changes(release, source))
    return LandingSums(release[first], source[first], sum_groups(counted.sums[rows], first))


def _count_before(ranges: NumberedRanges, source: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Return how many ranges begin before each bound, which is one of theirs. The sources are in order."""
    before = np.zeros(len(bound), np.int64)
    for rows, of_source in ranges.match_sources(source):
        before[rows] = of_source.start + np.searchsorted(ranges.start[of_source], bound[rows])
    return before
