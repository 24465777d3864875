"""Runs: the fewest offset ranges that hold some IDs of a window and no other, each with the digest of its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from onceover.lines.dedup import mark_changes
from onceover.lines.ranges import name_source
from onceover.lines.sums import count_groups, sum_groups
from onceover.model.digest import Digest
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs in the order of kind and ID. A run holds each of its offsets once: its length is its number of records."""

    kind: np.ndarray
    source: np.ndarray
    start: np.ndarray
    end: np.ndarray
    sums: np.ndarray

    def __len__(self) -> int:
        return len(self.kind)

    def __add__(self, other: Runs) -> Runs:
        """Return the runs of both, which have no ID in common."""
        return _join(*(np.concatenate((getattr(self, name), getattr(other, name))) for name in _ARRAYS))

    def take(self, most: int) -> Runs:
        """Return the first of the runs."""
        return self if len(self) <= most else Runs(*(getattr(self, name)[:most] for name in _ARRAYS))

    def list_ranges(self, kind: int) -> list[tuple[OffsetRange, Digest]]:
        """Return the runs of that kind."""
        rows = np.flatnonzero(self.kind == kind)
        columns = (each[rows].tolist() for each in (self.source, self.start, self.end, self.sums))
        return [(OffsetRange(name_source(source), start, end), Digest(*sums))
                for source, start, end, sums in zip(*columns, strict=True)]  # fmt: skip


_ARRAYS: Final = ("kind", "source", "start", "end", "sums")


def find_runs(kind: np.ndarray, source: np.ndarray, offset: np.ndarray, content: np.ndarray) -> Runs:
    """Return the runs of these IDs, each once and in order, with the content (n x 4) that its record has."""
    first = _find_first(kind, source, offset, offset + 1)
    last = _find_last(first, len(kind))
    return _join(kind[first], source[first], offset[first], offset[last] + 1, count_groups(content, first))


def _join(kind: np.ndarray, source: np.ndarray, start: np.ndarray, end: np.ndarray, sums: np.ndarray) -> Runs:
    order = np.lexsort((start, source, kind))
    kind, source, start, end, sums = (each[order] for each in (kind, source, start, end, sums))
    first = _find_first(kind, source, start, end)
    return Runs(kind[first], source[first], start[first], end[_find_last(first, len(kind))], sum_groups(sums, first))


def _find_first(kind: np.ndarray, source: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    begins = mark_changes(kind, source)
    begins[1:] |= start[1:] != end[:-1]
    return np.flatnonzero(begins)


def _find_last(first: np.ndarray, rows: int) -> np.ndarray:
    return np.append(first[1:], rows)[: len(first)] - 1
