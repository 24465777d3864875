"""Lines judged one by one, and the record of each ID: the line that counts for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.accounts import Accounts
from onceover.lines.dedup import DistinctLines, mark_changes
from onceover.lines.verdicts import EXTRA, FOREIGN, IdVerdicts
from onceover.lines.window_lines import WindowLines

NOT_EVALUATED, NO_WINDOW = -2, -1  # in place of an event time


@dataclass(frozen=True, slots=True)
class JudgedLines:
    """The verdict on each distinct line: `misplaced`, `rejected` by a decision, or neither. Its columns are `believed`
    or not; `evaluate` asks for the event time that its VALUE gives. `unknown` are contracts that the accounts lack, of
    extras: which contract their IDs have is not known, so they keep the event time that they state."""

    misplaced: np.ndarray
    rejected: np.ndarray
    believed: np.ndarray
    evaluate: np.ndarray
    unknown: tuple[bytes, ...]


def judge_lines(
    lines: WindowLines, distinct: DistinctLines, ids: IdVerdicts, accounts: Accounts, evaluated: np.ndarray | None
) -> JudgedLines:
    """Return the verdicts on these lines; `evaluated` as in `fold`."""
    row, number = distinct.row, distinct.id
    event_ms = lines.event_ms[row]
    places = {name: place for place, name in enumerate(accounts.contracts)}
    contract = np.array([places.get(name, -1) for name in lines.contracts], np.int64)[lines.contract[row]]
    is_own = contract == ids.contract[number]
    kind = ids.kind[number]
    is_unknown = (contract < 0) & (kind == EXTRA)
    doubtful = (~is_own | _find_other_columns(lines, distinct, is_own)) & (kind != FOREIGN) & ~is_unknown
    misplaced = (event_ms < max(accounts.start_ms, 0)) | (event_ms >= accounts.end_ms)
    unknown = {lines.contracts[n] for n in set(lines.contract[row[is_unknown & ~misplaced]].tolist())}
    evaluate = doubtful & ~misplaced
    if evaluated is not None:
        by_value = distinct.find_largest(evaluated)
        # Of a line in its contract's own words, too: if what evaluates gives another time now, it gives other columns.
        is_asked = (by_value != NOT_EVALUATED) & (kind != FOREIGN) & ~is_unknown
        misplaced |= is_asked & (by_value != event_ms)
        evaluate &= by_value == NOT_EVALUATED
    rejected = np.zeros(len(row), bool)
    decided = np.flatnonzero((ids.decided[number] >= 0) & ~misplaced)
    kept = accounts.decided.kept[ids.decided[number[decided]]]
    rejected[decided] = (lines.content[row[decided]] != kept).any(axis=1)
    return JudgedLines(misplaced, rejected, ~doubtful & lines.has_columns[row], evaluate, tuple(sorted(unknown)))


def _find_other_columns(lines: WindowLines, distinct: DistinctLines, is_own: np.ndarray) -> np.ndarray:
    """Return which lines, of those with the contract of their ID, have the same record and event time as another such
    line, and other columns, or another leader epoch, which is rare: VALUE then gives the columns of both."""
    differs = np.zeros(len(distinct), bool)
    if len(distinct) == len(distinct.first):
        return differs
    is_alone = np.diff(distinct.first, append=len(distinct)) == 1
    at = np.flatnonzero(is_own & ~is_alone[distinct.id])
    rows = distinct.row[at]
    keys = (lines.event_ms[rows], *lines.content[rows].T, distinct.id[at])
    order = np.lexsort(keys)
    repeats = ~mark_changes(*(key[order] for key in keys))
    repeats[:-1] |= repeats[1:]  # the one before it, too
    differs[at[order[repeats]]] = True
    return differs


@dataclass(frozen=True, slots=True)
class IdRecords:
    """The IDs that have lines which are neither misplaced nor rejected: each one's `id`, and those distinct lines, from
    `first` on in `line`, in the order of content and event time. The first one is its record. `has_contents` is True of
    IDs with several contents, `has_times` of those with several event times."""

    id: np.ndarray
    line: np.ndarray
    first: np.ndarray
    has_contents: np.ndarray
    has_times: np.ndarray

    @property
    def record(self) -> np.ndarray:
        record: np.ndarray = self.line[self.first]
        return record

    def find_any(self, values: np.ndarray) -> np.ndarray:
        """Return whether any of each ID's lines has a true value."""
        return np.logical_or.reduceat(values, self.first) if len(self.first) else np.zeros(0, bool)

    def list_lines(self, wanted: np.ndarray) -> np.ndarray:
        """Return the distinct lines of the wanted IDs, in order."""
        listed: np.ndarray = self.line[np.repeat(wanted, np.diff(self.first, append=len(self.line)))]
        return listed


def find_records(lines: WindowLines, distinct: DistinctLines, judged: JudgedLines) -> IdRecords:
    """Return the records of IDs. The smallest content comes first, then the earliest event time, then believed columns,
    then the largest leader epoch, so that the choice does not depend on the order of lines."""
    line = np.flatnonzero(~(judged.misplaced | judged.rejected)).astype(np.int32)
    begins = mark_changes(distinct.id[line])
    first = np.flatnonzero(begins).astype(np.int32)
    has_contents, has_times = np.zeros(len(first), bool), np.zeros(len(first), bool)
    if len(first) < len(line):
        place = np.cumsum(begins) - 1
        several = np.zeros(len(first), bool)
        several[place[~begins]] = True
        at = np.flatnonzero(several[place])
        of, rows = line[at], distinct.row[line[at]]
        content, event_ms = lines.content[rows].T, lines.event_ms[rows]
        choice = (lines.hash[rows], -lines.epoch[rows], ~judged.believed[of])
        order = np.lexsort((*choice, event_ms, *content[::-1], place[at]))
        line[at] = of[order]
        inner = ~begins[at]
        has_contents[place[at[inner & mark_changes(*(part[order] for part in content))]]] = True
        earliest = np.flatnonzero(~inner)
        times = event_ms[order]
        has_times[place[at[earliest]]] = np.minimum.reduceat(times, earliest) != np.maximum.reduceat(times, earliest)
    return IdRecords(distinct.id[line[first]], line, first, has_contents, has_times)
