"""What the ledger and persons say of a window's IDs: by this its lines are judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from onceover.lines.pieces import LandedPieces
from onceover.lines.ranges import NO_RANGES, NumberedRanges
from onceover.model.conflict import NO_CONTENT, Decision
from onceover.model.digest import EMPTY, read_content_hash

MOST_RUNS: Final = 1_000_000
"""Of all windows that are folded together: some 65 bytes for each."""


@dataclass(frozen=True, slots=True)
class DecidedContents:
    """The decided IDs, each with the hash of the content that was kept (n x 4), by the number of its range."""

    ids: NumberedRanges = NO_RANGES
    kept: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.uint32))

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> DecidedContents:
        """Take one decision for each ID. One that keeps no content rejects all."""
        listed = list(decisions)
        ids = NumberedRanges.of((each.offsets, n) for n, each in enumerate(listed))
        digests = [EMPTY if each.kept == NO_CONTENT else read_content_hash(each.kept) for each in listed]
        return cls(ids, np.array([digest.as_tuple()[1:] for digest in digests], np.uint32).reshape(-1, 4))


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of one window, which begins at `start_ms` and ends before `end_ms`.

    `pieces` are of the window's own landings, `released` the IDs that a release landed in it, by the number of the
    release. `accounted` IDs landed in any window; of the others those count that are in `own` ranges. `spare` IDs are
    in a range that landed, and in no landing. `shared` IDs were read by two landed batches and may be in another window
    too. Of `listed` IDs all contents are wanted.

    `contract` ranges hold, by index in `contracts`, the contract of each ID: by release, restatement or cutover; any
    other ID has `newest`. A summary gives `most_runs` runs.
    """

    start_ms: int
    end_ms: int
    pieces: LandedPieces
    contracts: tuple[bytes, ...]
    newest: int
    contract: NumberedRanges = NO_RANGES
    released: NumberedRanges = NO_RANGES
    decided: DecidedContents = field(default_factory=DecidedContents)
    accounted: NumberedRanges = NO_RANGES
    own: NumberedRanges = NO_RANGES
    spare: NumberedRanges = NO_RANGES
    shared: NumberedRanges = NO_RANGES
    listed: NumberedRanges = NO_RANGES
    most_runs: int = MOST_RUNS
