"""How much a batch may read after one was too large: half as much, and twice as much again once some have landed: more
of them each time that twice as much was too large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from onceover.model.offsets import OffsetRange

_MAX_PATIENCE: Final = 64


@dataclass(slots=True)
class BatchLimit:
    """The most offsets of the next batch; None is no limit but the policy's."""

    most: int | None = None
    _patience: int = 1
    """Batches that land until the next may be twice as large."""
    _landed: int = 0
    _has_grown: bool = False

    def clip(self, ranges: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        """Return the beginnings of the ranges, in proportion to their lengths; of each at least one offset, or of some
        ranges none."""
        total = sum(map(len, ranges))
        if self.most is None or total <= self.most:
            return tuple(ranges)
        if self.most < len(ranges):
            return tuple(OffsetRange(each.source, each.start, each.start + 1) for each in ranges[: self.most])
        return tuple(
            OffsetRange(each.source, each.start, each.start + max(1, len(each) * self.most // total)) for each in ranges
        )

    def halve(self, ranges: Sequence[OffsetRange]) -> None:
        """Note that a batch of these ranges was too large."""
        if self._has_grown:
            self._patience = min(2 * self._patience, _MAX_PATIENCE)
        self.most, self._landed, self._has_grown = max(1, sum(map(len, ranges)) // 2), 0, False

    def relax(self, ranges: Sequence[OffsetRange]) -> None:
        """Note that a batch of these ranges landed."""
        if self.most is not None and sum(map(len, ranges)) < self.most // 2:
            self.most, self._patience, self._landed, self._has_grown = None, 1, 0, False
        elif self.most is not None:
            self._landed += 1
            if self._landed >= self._patience:
                self.most, self._landed, self._has_grown = 2 * self.most, 0, True
