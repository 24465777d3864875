"""Runs: IDs of one kind as the fewest offset ranges that hold only them, each with the digest of its records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onceover.lines.dedup import mark_changes
from onceover.lines.ranges import name_source
from onceover.lines.sums import count_groups, sum_groups
from onceover.lines.verdicts import ORPHAN
from onceover.model.digest import Digest
from onceover.model.offsets import OffsetRange

LAST_ID: Final = (2**63 - 1, 2**63 - 1)
"""A source and an offset after all others."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs in the order of kind and ID. A run holds each of its offsets once: its length is its number of records.

    They may be some of a window's runs, for each ID may be one: orphans, which end once they are adopted, before other
    kinds. `is_whole` is False then, and the orphans are those before `until`, a source and an offset."""

    kind: np.ndarray
    source: np.ndarray
    start: np.ndarray
    end: np.ndarray
    sums: np.ndarray
    is_whole: bool = True
    until: tuple[int, int] = LAST_ID

    def __len__(self) -> int:
        return len(self.kind)

    def __add__(self, other: Runs) -> Runs:
        """Return the runs of both, which have no ID in common."""
        joined = _join(*(np.concatenate((getattr(self, name), getattr(other, name))) for name in _ARRAYS))
        both = replace(joined, is_whole=self.is_whole and other.is_whole)
        return both.end_orphans(min(self.until, other.until))

    def take(self, most: int) -> Runs:
        """Return so many of the runs."""
        if len(self) <= most:
            return self
        orphans, others = np.flatnonzero(self.kind == ORPHAN), np.flatnonzero(self.kind != ORPHAN)
        taken = self._select(np.sort(np.concatenate((orphans, others))[:most]), is_whole=False)
        if len(orphans) <= most:
            return taken
        first = orphans[most]
        return replace(taken, until=(int(self.source[first]), int(self.start[first])))

    def end_orphans(self, until: tuple[int, int]) -> Runs:
        """Return the runs without the orphans from there on."""
        if until >= self.until:
            return self
        source, offset = until
        is_before = (self.source < source) | ((self.source == source) & (self.start < offset))
        kept = np.flatnonzero((self.kind != ORPHAN) | is_before)
        return replace(self._select(kept, is_whole=False), until=until)

    def list_ranges(self, kind: int) -> list[tuple[OffsetRange, Digest]]:
        """Return the runs of that kind."""
        rows = np.flatnonzero(self.kind == kind)
        columns = (each[rows].tolist() for each in (self.source, self.start, self.end, self.sums))
        return [(OffsetRange(name_source(source), start, end), Digest(*sums))
                for source, start, end, sums in zip(*columns, strict=True)]  # fmt: skip

    def _select(self, rows: np.ndarray, *, is_whole: bool) -> Runs:
        return replace(self, is_whole=is_whole, **{name: getattr(self, name)[rows] for name in _ARRAYS})


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
