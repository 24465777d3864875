"""Lines judged one by one, and the record of each reading: the line that counts for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.accounts import Accounts
from onceover.lines.dedup import DistinctLines, mark_changes
from onceover.lines.verdicts import EXTRA, FOREIGN, Verdicts
from onceover.lines.window_lines import WindowLines

NOT_EVALUATED, NO_WINDOW = -2, -1  # in place of an event time


@dataclass(frozen=True, slots=True)
class JudgedLines:
    """The verdict on each distinct line: `misplaced` or not. Its columns are `believed` or not; `evaluate` asks for the
    event time that its VALUE gives. `unknown` are contracts that the accounts lack, of extras: which contract their IDs
    have is not known, so they keep the event time that they state."""

    misplaced: np.ndarray
    believed: np.ndarray
    evaluate: np.ndarray
    unknown: tuple[bytes, ...]


def judge_lines(
    lines: WindowLines, distinct: DistinctLines, verdicts: Verdicts, accounts: Accounts, evaluated: np.ndarray | None
) -> JudgedLines:
    """Return the verdicts on these lines; `evaluated` as in `fold`."""
    row, number = distinct.row, distinct.id
    event_ms = lines.event_ms[row]
    places = {name: place for place, name in enumerate(accounts.contracts)}
    contract = np.array([places.get(name, -1) for name in lines.contracts], np.int64)[lines.contract[row]]
    is_own = contract == verdicts.contract[number]
    kind = verdicts.kind[number]
    is_unknown = (contract < 0) & (kind == EXTRA)
    misplaced = (event_ms < max(accounts.start_ms, 0)) | (event_ms >= accounts.end_ms)
    doubtful = ~is_own | _find_other_columns(lines, distinct, is_own & ~misplaced)
    doubtful &= (kind != FOREIGN) & ~is_unknown
    unknown = {lines.contracts[n] for n in set(lines.contract[row[is_unknown & ~misplaced]].tolist())}
    evaluate = doubtful & ~misplaced
    if evaluated is not None:
        by_value = distinct.find_largest(evaluated)
        # Of a line in its contract's own words, too: if what evaluates gives another time now, it gives other columns.
        is_asked = (by_value != NOT_EVALUATED) & (kind != FOREIGN) & ~is_unknown
        misplaced |= is_asked & (by_value != event_ms)
        evaluate &= by_value == NOT_EVALUATED
    return JudgedLines(misplaced, ~doubtful & lines.has_columns[row], evaluate, tuple(sorted(unknown)))


def _find_other_columns(lines: WindowLines, distinct: DistinctLines, wanted: np.ndarray) -> np.ndarray:
    """Return which lines, of the wanted ones, have the same record as another, and another event time or other columns:
    VALUE then gives those of both."""
    differs = np.zeros(len(distinct), bool)
    if len(distinct) == len(distinct.first):
        return differs
    is_alone = np.diff(distinct.first, append=len(distinct)) == 1
    at = np.flatnonzero(wanted & ~is_alone[distinct.id])
    keys = (*lines.content[distinct.row[at]].T, distinct.id[at])
    order = np.lexsort(keys)
    repeats = ~mark_changes(*(key[order] for key in keys))
    repeats[:-1] |= repeats[1:]  # the one before it, too
    differs[at[order[repeats]]] = True
    return differs


@dataclass(frozen=True, slots=True)
class Records:
    """The readings that have lines which are not misplaced: each one's number, `id`, and those distinct lines, from
    `first` on in `line`, in the order of content and event time. The first one is its record. `has_contents` is True of
    readings with several contents."""

    id: np.ndarray
    line: np.ndarray
    first: np.ndarray
    has_contents: np.ndarray

    @property
    def record(self) -> np.ndarray:
        record: np.ndarray = self.line[self.first]
        return record

    def find_any(self, values: np.ndarray) -> np.ndarray:
        """Return whether any of each reading's lines has a true value."""
        return np.logical_or.reduceat(values, self.first) if len(self.first) else np.zeros(0, bool)


def find_records(lines: WindowLines, distinct: DistinctLines, judged: JudgedLines) -> Records:
    """Return the records of readings. The smallest content comes first, then the earliest event time, then believed
    columns, so that the choice does not depend on the order of lines."""
    line = np.flatnonzero(~judged.misplaced).astype(np.int32)
    begins = mark_changes(distinct.id[line])
    first = np.flatnonzero(begins).astype(np.int32)
    has_contents = np.zeros(len(first), bool)
    if len(first) < len(line):
        place = np.cumsum(begins) - 1
        several = np.zeros(len(first), bool)
        several[place[~begins]] = True
        at = np.flatnonzero(several[place])
        of, rows = line[at], distinct.row[line[at]]
        content = lines.content[rows].T
        choice = (lines.hash[rows], ~judged.believed[of], lines.event_ms[rows])
        order = np.lexsort((*choice, *content[::-1], place[at]))
        line[at] = of[order]
        has_contents[place[at[~begins[at] & mark_changes(*(part[order] for part in content))]]] = True
    return Records(distinct.id[line[first]], line, first, has_contents)


def find_repeats(lines: WindowLines, rows: np.ndarray) -> np.ndarray:
    """Return which of these records, in the order of their IDs, another one before has under another leader epoch, with
    the same content: both are one record."""
    repeats = np.zeros(len(rows), bool)
    begins = mark_changes(lines.source[rows], lines.offset[rows])
    if begins.all():
        return repeats
    number = np.cumsum(begins)
    at = np.flatnonzero(np.isin(number, number[~begins]))
    keys = (*lines.content[rows[at]].T, number[at])
    order = np.lexsort(keys)
    repeats[at[order[~mark_changes(*(key[order] for key in keys))]]] = True
    return repeats
