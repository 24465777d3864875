"""How much a batch may read after one was too large: half as much each time, twice as much with each that lands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onceover.model.offsets import OffsetRange


@dataclass(slots=True)
class BatchLimit:
    """The most offsets of the next batch; None is no limit but the policy's."""

    most: int | None = None

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
        self.most = max(1, sum(map(len, ranges)) // 2)

    def relax(self, ranges: Sequence[OffsetRange]) -> None:
        """Note that a batch of these ranges landed."""
        if self.most is not None:
            self.most = 2 * self.most if sum(map(len, ranges)) >= self.most // 2 else None
