"""Verdicts on IDs, one by one: whether an ID's lines count, and by what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.accounts import Accounts
from onceover.lines.pieces import UNLANDED

LANDED, EXTRA, STRAY, SPARE, FOREIGN = range(5)


@dataclass(frozen=True, slots=True)
class IdVerdicts:
    """The verdict on each ID of a window, before its lines are looked at.

    Two kinds count: LANDED, for a landing of this window holds the ID, or a decision; and EXTRA, for it landed nowhere,
    and a log that the pipeline read has it. STRAY: it landed, but not in this window. SPARE: a range that landed covers
    it, and no landing holds it. FOREIGN: it landed nowhere, and the pipeline never read that log.

    `piece` and `release` say by what it counts, `decided` which decision is about it; -1 is none. `contract` is the one
    that its records have.
    """

    kind: np.ndarray
    piece: np.ndarray
    release: np.ndarray
    decided: np.ndarray
    contract: np.ndarray
    is_shared: np.ndarray
    is_listed: np.ndarray


def judge_ids(source: np.ndarray, offset: np.ndarray, accounts: Accounts) -> IdVerdicts:
    """Return the verdicts on these IDs, which are in order."""
    piece, release = accounts.pieces.ranges.find(source, offset), accounts.released.find(source, offset)
    decided, contract = accounts.decided.ids.find(source, offset), accounts.contract.find(source, offset)
    is_landed = (piece >= 0) & (accounts.pieces.owner[piece] != UNLANDED) if len(accounts.pieces) else piece >= 0
    is_accounted = accounts.accounted.find(source, offset) >= 0
    is_landed |= (release >= 0) | (is_accounted & (decided >= 0))
    kind = np.where(accounts.own.find(source, offset) >= 0, np.int8(EXTRA), np.int8(FOREIGN))
    kind[is_accounted] = STRAY
    kind[accounts.spare.find(source, offset) >= 0] = SPARE
    kind[is_landed] = LANDED
    return IdVerdicts(
        kind,
        piece,
        release,
        decided,
        np.where(contract < 0, np.int32(accounts.newest), contract),
        accounts.shared.find(source, offset) >= 0,
        accounts.listed.find(source, offset) >= 0,
    )
