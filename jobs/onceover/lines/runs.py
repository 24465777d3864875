"""Runs: the fewest offset ranges that hold some readings of a window, and no other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onceover.lines.dedup import mark_changes
from onceover.lines.ranges import name_source
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs in the order of kind, source, leader epoch and offset; their length is their number of readings. They are
    all, if `is_whole`."""

    kind: np.ndarray
    source: np.ndarray
    epoch: np.ndarray
    start: np.ndarray
    end: np.ndarray
    is_whole: bool = True

    def __len__(self) -> int:
        return len(self.kind)

    def __add__(self, other: Runs) -> Runs:
        """Return the runs of both, which have no reading in common."""
        both = _join(*(np.concatenate((getattr(self, name), getattr(other, name))) for name in _ARRAYS))
        return replace(both, is_whole=self.is_whole and other.is_whole)

    def take(self, most: int) -> Runs:
        """Return the first of the runs."""
        if len(self) <= most:
            return self
        return replace(Runs(*(getattr(self, name)[:most] for name in _ARRAYS)), is_whole=False)

    def list_spans(self, kind: int) -> list[EpochSpan]:
        """Return the runs of that kind."""
        rows = np.flatnonzero(self.kind == kind)
        columns = (each[rows].tolist() for each in (self.source, self.start, self.end, self.epoch))
        return [EpochSpan(OffsetRange(name_source(source), start, end), epoch)
                for source, start, end, epoch in zip(*columns, strict=True)]  # fmt: skip


_ARRAYS: Final = ("kind", "source", "epoch", "start", "end")


def find_runs(kind: np.ndarray, source: np.ndarray, epoch: np.ndarray, offset: np.ndarray) -> Runs:
    """Return the runs of these readings, each given once."""
    return _join(kind, source, epoch, offset, offset + 1)


def _join(*arrays: np.ndarray) -> Runs:
    kind, source, epoch, start, _ = arrays
    order = np.lexsort((start, epoch, source, kind))
    kind, source, epoch, start, end = (each[order] for each in arrays)
    begins = mark_changes(kind, source, epoch)
    begins[1:] |= start[1:] != end[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(kind))[: len(first)] - 1
    return Runs(kind[first], source[first], epoch[first], start[first], end[last])
