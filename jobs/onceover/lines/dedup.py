"""Lines deduplicated: each distinct line of each reading once, with its number of copies.

A reading is an ID under one leader epoch: what a log holds under an offset after it was cut is another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.window_lines import WindowLines


@dataclass(frozen=True, slots=True)
class DistinctLines:
    """The distinct lines in the order of ID, leader epoch and line hash. Their rows are `order`, cut where each one's
    copies `begin`; `row` is the first of them, `id` numbers its reading, from 0, and `first` is where each reading's
    distinct lines begin."""

    order: np.ndarray
    begin: np.ndarray
    row: np.ndarray
    id: np.ndarray
    first: np.ndarray

    def __len__(self) -> int:
        return len(self.row)

    def count_copies(self) -> np.ndarray:
        return np.diff(self.begin, append=len(self.order))

    def find_largest(self, values: np.ndarray) -> np.ndarray:
        """Return the largest of the values, one for each row, that the copies of each distinct line have."""
        return np.maximum.reduceat(values[self.order], self.begin) if len(self) else values[:0]


def deduplicate(lines: WindowLines) -> DistinctLines:
    """Return the distinct lines. Two lines of one reading with the same hash are one line."""
    if not len(lines):
        none = np.empty(0, np.int64)
        return DistinctLines(none, none, none, none, none)
    order = _sort_by_id(lines.source, lines.offset).astype(np.int32)
    line_hash = lines.hash[order]
    begins = mark_changes(lines.source[order], lines.offset[order])
    begins_line = begins | mark_changes(lines.epoch[order], line_hash)
    several = begins_line & ~begins
    number = np.cumsum(begins, dtype=np.int32) - np.int32(1)
    if several.any():  # copies of one line may lie between those of another
        has_several = np.zeros(number[-1] + 1, bool)
        has_several[number[several]] = True
        at = np.flatnonzero(has_several[number])
        inner = at[np.lexsort((line_hash[at], lines.epoch[order[at]], number[at]))]
        order[at], line_hash[at] = order[inner], line_hash[inner]
        begins |= mark_changes(lines.epoch[order])
        begins_line = begins | mark_changes(line_hash)
        number = np.cumsum(begins, dtype=np.int32) - np.int32(1)
    begin = np.flatnonzero(begins_line).astype(np.int32)
    first = np.flatnonzero(begins[begin]).astype(np.int32)
    return DistinctLines(order, begin, order[begin], number[begin], first)


def mark_changes(*columns: np.ndarray) -> np.ndarray:
    """Return whether each row is the first one, or differs from the row before."""
    changes = np.ones(len(columns[0]), bool)
    if len(changes):
        changes[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        changes[1:] |= column[1:] != column[:-1]
    return changes


def _sort_by_id(source: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return the stable order of the IDs. Appends are in order, so that little is left to sort."""
    if (source == source[0]).all():
        return np.argsort(offset, kind="stable")
    return np.lexsort((offset, source))
