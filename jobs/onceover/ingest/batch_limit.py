"""How much a batch may read after one was too large: half as much; twice as much again once some that filled it have
landed, more of them each time that twice as much was too large, fewer each time that it landed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from onceover.model.offsets import OffsetRange
from onceover.model.wording import pluralize

log = logging.getLogger(__name__)
_FIRST_PATIENCE: Final = 8
_MAX_PATIENCE: Final = 64


@dataclass(slots=True)
class BatchLimit:
    """The most offsets of the next batch; None is no limit but the policy's."""

    most: int | None = None
    _patience: int = _FIRST_PATIENCE
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

    def halve(self, ranges: Sequence[OffsetRange], why: str) -> None:
        """Note, in the log too, that a batch of these ranges was too large, and why."""
        if self._has_grown:
            self._patience = min(max(2 * self._patience, _FIRST_PATIENCE), _MAX_PATIENCE)
        offsets = sum(map(len, ranges))
        self.most, self._landed, self._has_grown = max(1, offsets // 2), 0, False
        log.warning("a batch of %s is too large, the next reads at most %s: %s",
                    pluralize(offsets, "offset"), f"{self.most:,}", why)  # fmt: skip

    def relax(self, ranges: Sequence[OffsetRange]) -> None:
        """Note that a batch of these ranges landed. One of less than half the limit shows nothing."""
        if self.most is None or sum(map(len, ranges)) < self.most // 2:
            return
        self._landed += 1
        if self._landed >= self._patience:
            if self._has_grown:
                self._patience = max(1, self._patience // 2)
            self.most, self._landed, self._has_grown = 2 * self.most, 0, True
