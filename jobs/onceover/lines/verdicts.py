"""Verdicts on IDs, one by one: whether an ID's lines count, and what those are that no landing accounts for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.accounts import BEYOND, Accounts

COUNTS, STRAY, PENDING, BEYOND_END, FOREIGN, ORPHAN, UNSORTED = range(7)


@dataclass(frozen=True, slots=True)
class IdVerdicts:
    """The verdict on each ID of a window, before its lines are looked at.

    `kind` COUNTS: a landing of this window holds the ID, or a decision. STRAY: it landed, but not in this window. The
    others landed nowhere: Kafka holds the offset, so that ingest lands it (PENDING), the log has not reached it
    (BEYOND_END), the pipeline never read it (FOREIGN), the line is all there is of the record (ORPHAN), or what Kafka
    holds is unknown (UNSORTED).

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
    counts = (piece >= 0) | (release >= 0)
    kind = np.where(counts, np.int8(COUNTS), np.int8(UNSORTED))
    if accounts.accounted is not None:
        is_accounted = accounts.accounted.find(source, offset) >= 0
        kind[~counts & is_accounted] = STRAY
        kind[(decided >= 0) & ~is_accounted] = UNSORTED  # the content that a person kept is adopted first
    unlanded = np.flatnonzero(kind == UNSORTED)
    kind[unlanded] = _sort_unlanded(source[unlanded], offset[unlanded], accounts)
    return IdVerdicts(
        kind,
        piece,
        release,
        decided,
        np.where(contract < 0, np.int32(accounts.newest), contract),
        accounts.shared.find(source, offset) >= 0,
        accounts.listed.find(source, offset) >= 0,
    )


def _sort_unlanded(source: np.ndarray, offset: np.ndarray, accounts: Accounts) -> np.ndarray:
    if accounts.held is None:
        return np.full(len(source), UNSORTED, np.int8)
    kind = np.full(len(source), ORPHAN, np.int8)
    if accounts.own is not None:
        own = accounts.own.find(source, offset)
        kind[own < 0] = FOREIGN
        kind[own == BEYOND] = BEYOND_END
    kind[accounts.held.find(source, offset) >= 0] = PENDING
    return kind
