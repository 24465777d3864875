"""What the ledger says of a window's IDs: by this its lines are judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from onceover.lines.pieces import LandedPieces
from onceover.lines.ranges import NO_RANGES, EpochRanges, NumberedRanges

MAX_RUNS: Final = 1_000_000
"""Of all windows that are folded together: some 70 bytes for each."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of one window, which begins at `start_ms` and ends before `end_ms`.

    `pieces` are of the window's own landings, `released` the IDs that a release landed in it, by the number of the
    release. `accounted` IDs landed in any window; of the others those count that are in `own` ranges, and so do records
    `beside`, whose IDs landed under other leader epochs alone. `spare` IDs are in a range that landed, and in no
    landing. Of `blind` sources a landing has no leader epochs: their records are judged by the ID alone.

    `contract` ranges hold, by index in `contracts`, the contract of each ID: by release, restatement or cutover; any
    other ID has `newest`. A summary gives `max_runs` runs.
    """

    start_ms: int
    end_ms: int
    pieces: LandedPieces
    contracts: tuple[bytes, ...]
    newest: int
    contract: NumberedRanges = NO_RANGES
    released: NumberedRanges = NO_RANGES
    accounted: NumberedRanges = NO_RANGES
    own: NumberedRanges = NO_RANGES
    beside: EpochRanges = field(default_factory=EpochRanges)
    spare: NumberedRanges = NO_RANGES
    blind: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    max_runs: int = MAX_RUNS
