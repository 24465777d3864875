"""A window's lines in units that are folded one by one: no ID has lines in two of them, so that their sums add up.

A window of at most `unit_bytes` is one unit, and is read once. Of a larger one the IDs are read first, then its lines
in blocks of as many bytes, each a unit, without the IDs that two blocks hold. The file is read once more for each
further unit, which has all lines of some of those IDs, as many bytes of them.

    blocks    1 2 3 4 | 5 2 6 | 7 8 4 4
    units     1 3     | 5 6   | 7 8     | 2 2 4 4 4
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np

from onceover.lines.ranges import number_sources
from onceover.lines.read import Lines, read

UNIT_BYTES: Final = 192 * 1024 * 1024
"""Of text, 1.6 million lines at most. A fold takes some 260 bytes for each, and their columns."""

FilePiece = tuple[bool, memoryview]
"""Whole lines of a window's compacted file (True) or of its text."""


@dataclass(frozen=True, slots=True)
class UnitPiece:
    """Some lines of a unit, from one piece of a file. Corrupt lines are in the unit that has their block."""

    unit: int
    lines: Lines
    compacted: bool


def cut_units(
    read_pieces: Callable[[], Iterable[FilePiece]], weight: int, unit_bytes: int = UNIT_BYTES
) -> Iterator[UnitPiece]:
    """Yield at least one piece, and all of one unit after those of another. `read_pieces` reads the window's files, of
    `weight` bytes of text in all, each time the same."""
    if weight <= unit_bytes:
        unit = UnitPiece(0, read(memoryview(b"")), compacted=False)
        for compacted, text in read_pieces():
            unit = UnitPiece(0, read(text), compacted)
            yield unit
        if not len(unit.lines):
            yield unit
        return
    repeated = _find_repeated(_number_blocks(read_pieces(), unit_bytes))
    weights, blocks = np.zeros(sum(map(len, repeated.values())), np.int64), 0
    for block, compacted, lines in _number_blocks(read_pieces(), unit_bytes):
        places = _find_places(lines, repeated)
        np.add.at(weights, places[places >= 0], (lines.end - lines.start)[places >= 0])
        yield UnitPiece(block, lines.select(np.flatnonzero(places < 0)), compacted)
        blocks = block + 1
    further = np.append((np.cumsum(weights) - weights) // unit_bytes, -1)  # the last one is for place -1
    for number in np.unique(further[:-1]).tolist():
        for _, compacted, lines in _number_blocks(read_pieces(), unit_bytes):
            chosen = np.flatnonzero(further[_find_places(lines, repeated)] == number)
            yield UnitPiece(blocks + number, lines.select(chosen), compacted)


def count_units(weight: int, unit_bytes: int = UNIT_BYTES) -> int:
    """Return in how many units a window is folded, but for those of IDs that two blocks hold."""
    return max(-(-weight // unit_bytes), 1)


def _number_blocks(pieces: Iterable[FilePiece], unit_bytes: int) -> Iterator[tuple[int, bool, Lines]]:
    at = 0
    for compacted, text in pieces:
        yield at // unit_bytes, compacted, read(text)
        at += len(text)


def _find_repeated(numbered: Iterable[tuple[int, bool, Lines]]) -> dict[int, np.ndarray]:
    """Return by source the offsets of the IDs that two blocks hold, in order."""
    every: dict[int, list[np.ndarray]] = {}
    for _, block in groupby(numbered, itemgetter(0)):
        of_block: dict[int, list[np.ndarray]] = {}
        for *_, lines in block:
            source = _number_sources(lines)
            for each in np.unique(source[lines.intact]).tolist():
                of_block.setdefault(each, []).append(lines.offset[lines.intact & (source == each)])
        for each, offsets in of_block.items():
            every.setdefault(each, []).append(np.unique(np.concatenate(offsets)))
    repeated = {}
    for each, found in every.items():
        offset = np.sort(np.concatenate(found), kind="stable")
        twice = np.unique(offset[1:][offset[1:] == offset[:-1]])
        if len(twice):
            repeated[each] = twice
    return repeated


def _find_places(lines: Lines, repeated: Mapping[int, np.ndarray]) -> np.ndarray:
    """Return the place of each line's ID among all these IDs, -1 of another one, and of a corrupt line."""
    places, source, first = np.full(len(lines), -1), _number_sources(lines), 0
    for each, offsets in repeated.items():
        rows = np.flatnonzero(lines.intact & (source == each))
        at = np.searchsorted(offsets, lines.offset[rows])
        is_held = offsets[np.minimum(at, len(offsets) - 1)] == lines.offset[rows]
        places[rows[is_held]] = first + at[is_held]
        first += len(offsets)
    return places


def _number_sources(lines: Lines) -> np.ndarray:
    return number_sources(lines.generation, lines.kafka_partition)
