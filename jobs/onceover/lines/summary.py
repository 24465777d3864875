"""A window's raw in sum: its lines by verdict, its digests by piece, and the few IDs that need more than a number.

Sums of units, which have no ID in common, add up to the sum of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from onceover.lines.dedup import mark_changes
from onceover.lines.runs import Runs
from onceover.lines.sums import PieceSums
from onceover.model.digest import Digest

MOST_IDS = 10_000  # in a list of contents
MOST_CONTRACTS = 10


@dataclass(frozen=True, slots=True)
class Contents:
    """Distinct contents of IDs, in order of ID, content (n x 4) and event time; `counts` says which ones count."""

    source: np.ndarray
    offset: np.ndarray
    content: np.ndarray
    event_ms: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.source)

    def __add__(self, other: Contents) -> Contents:
        """Return the contents of both, which have no ID in common."""
        both = Contents(*(np.concatenate((getattr(self, n), getattr(other, n))) for n in self.__slots__))
        return both.select(np.lexsort((both.offset, both.source)))

    def select(self, rows: np.ndarray) -> Contents:
        return Contents(*(getattr(self, name)[rows] for name in self.__slots__))

    def take_first(self, most: int = MOST_IDS) -> Contents:
        """Return the contents of the first IDs alone."""
        return self.select(np.flatnonzero(np.cumsum(mark_changes(self.source, self.offset)) <= most))


@dataclass(frozen=True, slots=True)
class WindowSummary:
    """One window, or the part of it that has some of its IDs.

    Numbers of lines: `lines` in all, those that are `corrupt`, `misplaced` (another window's by their event time, or
    by VALUE under their ID's contract), `rejected` by a decision, and intact ones whose ID is a `stray`, `spare` or
    `foreign`. Numbers of IDs: `by_value` count by what VALUE gives, not by a line's columns; `conflicts` have several
    contents and `misdated` ones several event times among the lines that count.

    `pieces` sum the landed records that count, `extras` (one row) those that landed nowhere, `compacted` (one row)
    those that a compacted file holds. `runs` are of extras and strays. `contested` IDs have several contents or event
    times: the first MOST_IDS of them; `decided` are all contents of decided IDs, `shared` the runs of IDs that count
    and may be in another window too, `listed` the contents of wanted IDs that count. `unknown` are contracts that the
    accounts lack, of extras, the first MOST_CONTRACTS of them."""

    lines: int
    corrupt: int
    misplaced: int
    rejected: int
    stray: int
    spare: int
    foreign: int
    by_value: int
    conflicts: int
    misdated: int
    compacted: np.ndarray
    pieces: PieceSums
    extras: np.ndarray
    runs: Runs
    contested: Contents
    decided: Contents
    shared: Runs
    listed: Contents
    unknown: tuple[bytes, ...] = ()

    def __add__(self, other: WindowSummary) -> WindowSummary:
        """Return the sum of two parts that have no ID in common."""
        values = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        unknown = tuple(sorted({*self.unknown, *other.unknown})[:MOST_CONTRACTS])
        return WindowSummary(**{**values, "contested": values["contested"].take_first(), "unknown": unknown})

    @property
    def digest(self) -> Digest:
        """Return the digest of the records that count."""
        return Digest(*map(int, self.pieces.sums.sum(axis=0) + self.extras))

    @property
    def duplicates(self) -> int:
        """Return the number of lines that repeat a counted record."""
        other = self.corrupt + self.misplaced + self.rejected + self.stray + self.spare + self.foreign
        return self.lines - other - self.digest.records
