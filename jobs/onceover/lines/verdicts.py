"""Verdicts on readings, one by one: whether the lines of an ID under one leader epoch count, and by what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.accounts import Accounts
from onceover.lines.dedup import mark_changes

LANDED, EXTRA, STRAY, SPARE, FOREIGN, CLASHING = range(6)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdict on each reading of a window, before its lines are looked at.

    Two kinds count: LANDED, for a landing of this window holds it; and EXTRA, for it landed nowhere, and a log that the
    pipeline read has it. STRAY: its ID landed, but not in this window, or under another leader epoch. SPARE: a range
    that landed in the window covers it, and no landing there holds it. FOREIGN: it landed nowhere, and the pipeline
    never read that log.

    `piece` and `release` say by what it counts; -1 is none. `contract` is the one that its records have.
    """

    kind: np.ndarray
    piece: np.ndarray
    release: np.ndarray
    contract: np.ndarray


def judge_readings(
    source: np.ndarray, offset: np.ndarray, epoch: np.ndarray, is_released: np.ndarray, accounts: Accounts
) -> Verdicts:
    """Return the verdicts on these readings, which are in the order of their IDs. Where one of an ID `is_released`, by
    its line, a release holds that one, and no other."""
    piece, release = accounts.pieces.ranges.find(source, offset, epoch), accounts.released.find(source, offset)
    if len(accounts.released) and len(source):
        begins = mark_changes(source, offset)
        of_id = np.logical_or.reduceat(is_released, np.flatnonzero(begins))[np.cumsum(begins) - 1]
        release[of_id & ~is_released] = -1
    contract = accounts.contract.find(source, offset)
    kind = np.full(len(source), np.int8(LANDED))
    rest = np.flatnonzero((piece < 0) & (release < 0))
    if len(rest):  # few, or none
        kind[rest] = _judge_rest(source[rest], offset[rest], epoch[rest], accounts)
    return Verdicts(kind, piece, release, np.where(contract < 0, np.int32(accounts.newest), contract))


def _judge_rest(source: np.ndarray, offset: np.ndarray, epoch: np.ndarray, accounts: Accounts) -> np.ndarray:
    """Return the kind of readings that no landing of the window holds."""
    kind = np.where(accounts.own.find(source, offset) >= 0, np.int8(EXTRA), np.int8(FOREIGN))
    kind[accounts.accounted.find(source, offset) >= 0] = STRAY
    kind[accounts.spare.find(source, offset) >= 0] = SPARE
    kind[accounts.beside.find(source, offset, epoch) >= 0] = EXTRA
    return kind
