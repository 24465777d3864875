"""A window's raw in sum: its lines by verdict, its digests by piece, and the few IDs that need more than a number.

Sums of units, which have no ID in common, add up to the sum of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from onceover.lines.digest_sums import PieceSums
from onceover.lines.runs import Runs
from onceover.model.digest import Digest

MAX_CONTRACTS: Final = 10


@dataclass(frozen=True, slots=True)
class WindowSummary:
    """One window, or the part of it that has some of its IDs.

    Numbers of lines: `lines` in all, those that are `corrupt`, `misplaced` (another window's by their event time, or
    by VALUE under their ID's contract), and intact ones that are `stray`, `spare` or `foreign`. Of records that count,
    `by_value` are those whose columns VALUE gives. Readings that count are `repeated` where they have the record of
    another leader epoch.

    Rows of sums: `records` of all that count, `compacted` of those that a compacted file holds; `pieces` sum landed
    readings, by the landings that hold them. `runs` are of extras, strays and clashing readings. `unknown` are
    contracts that the accounts lack, of extras, the first MAX_CONTRACTS of them.
    """

    lines: int
    corrupt: int
    misplaced: int
    stray: int
    spare: int
    foreign: int
    by_value: int
    repeated: int
    records: np.ndarray
    compacted: np.ndarray
    pieces: PieceSums
    runs: Runs
    unknown: tuple[bytes, ...] = ()

    def __add__(self, other: WindowSummary) -> WindowSummary:
        """Return the sum of two parts that have no ID in common."""
        values = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return WindowSummary(**{**values, "unknown": tuple(sorted({*values["unknown"]})[:MAX_CONTRACTS])})

    @property
    def digest(self) -> Digest:
        """Return the digest of the records that count."""
        return Digest(*map(int, self.records))
