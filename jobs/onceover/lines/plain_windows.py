"""Plain windows of a batch, folded in one go: what nearly all windows are.

`fold` gives the same for each, but a call takes as long as a thousand lines. A window is plain where

- every intact line is of the newest contract, as its ID is, has columns, and lies in the window
- only copies of a line have its ID, and a landing holds it under its leader epoch, or all sources are blind
- nothing was released in it, and its compacted file has all of its lines or none
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from onceover.lines.accounts import Accounts
from onceover.lines.dedup import mark_changes
from onceover.lines.digest_sums import WIDTH, PieceSums, count_groups, sum_by_piece, sum_groups
from onceover.lines.ranges import NumberedRanges
from onceover.lines.runs import Runs
from onceover.lines.summary import WindowSummary
from onceover.lines.window_lines import WindowLines

_SPAN_BITS: Final = 40  # of an offset beyond the window's first one of its Kafka partition
_LARGEST: Final = (1 << _SPAN_BITS) - 1
_NONE: Final = np.empty(0, np.int64)
_NO_RUNS: Final = Runs(np.empty(0, np.int8), _NONE, np.empty(0, np.int32), _NONE, _NONE)


@dataclass(frozen=True, slots=True)
class PlainWindows:
    """The summary of each plain window, by its number, and the rows of their records in the order of window and ID."""

    summaries: dict[int, WindowSummary]
    counting: np.ndarray


def fold_plain(
    lines: WindowLines, bounds: np.ndarray, corrupt: np.ndarray, accounts: Sequence[Accounts]
) -> PlainWindows:
    """Fold those of these windows that are plain. The lines of window n are in `[bounds[n], bounds[n + 1])`, beside so
    many `corrupt` ones."""
    count = np.diff(bounds)
    candidates = np.array([
        bool(rows) and not len(each.released) and len(each.pieces.ranges.of_epoch) == 1
        for rows, each in zip(count.tolist(), accounts, strict=True)
    ])  # fmt: skip
    if not candidates.any():
        return PlainWindows({}, _NONE)
    window = np.repeat(np.arange(len(accounts)), count)
    is_plain = candidates & _have_all(window, _find_regular(lines, window, accounts), len(accounts))
    ids = _Ids(lines, window)
    is_plain &= _have_all(ids.window, ~ids.has_other, len(accounts))
    compacted = np.bincount(window, lines.compacted, len(accounts))
    is_plain &= (compacted == 0) | (compacted == count)
    numbers = np.flatnonzero(candidates).tolist()
    of_contract = ids.locate(numbers, [accounts[n].contract for n in numbers])
    is_plain[of_contract.window[of_contract.rows > 0]] = False
    landed = ids.locate(numbers, [next(iter(accounts[n].pieces.ranges.of_epoch.values())) for n in numbers])
    is_plain &= np.bincount(landed.window, landed.rows, len(accounts)) == np.bincount(ids.window, None, len(accounts))
    chosen = ids.order[is_plain[ids.window]]
    held = np.flatnonzero(is_plain[landed.window] & (landed.rows > 0))
    sums = count_groups(lines.content[chosen], np.cumsum(landed.rows[held]) - landed.rows[held])
    summed = _sum_windows(landed, held, sums)
    summaries = {
        n: WindowSummary(
            int(count[n] + corrupt[n]), int(corrupt[n]), 0, 0, 0, 0, 0, 0,
            records, records if compacted[n] else np.zeros(WIDTH, np.int64), pieces, _NO_RUNS,
        )
        for n, (records, pieces) in zip(np.flatnonzero(is_plain).tolist(), summed, strict=True)
    }  # fmt: skip
    return PlainWindows(summaries, chosen)


@dataclass(frozen=True, slots=True)
class _Located:
    """Ranges of several windows in the order of window and ID: of which, where they are, and how many rows each has."""

    window: np.ndarray
    number: np.ndarray
    source: np.ndarray
    rows: np.ndarray


class _Ids:
    """The IDs of lines in the order of window and ID: `order` has the row of each one's first line. A window with one
    of which two lines differ, `has_other`, is not plain."""

    def __init__(self, lines: WindowLines, window: np.ndarray) -> None:
        order = np.lexsort((lines.offset, lines.source, window))
        is_other = mark_changes(window[order], lines.source[order], lines.offset[order])
        is_line = is_other | mark_changes(lines.hash[order])
        self.order = order[is_line]
        self.window, source, offset = window[self.order], lines.source[self.order], lines.offset[self.order]
        begins = mark_changes(self.window, source)
        first, place = np.flatnonzero(begins), np.cumsum(begins) - 1
        self._base, self._sources = offset[first], np.unique(source[first])
        self._group = self._number(self.window[first], source[first])
        self.has_other = ~is_other[is_line]
        span = np.minimum(offset - self._base[place], _LARGEST)  # no range holds an ID that is farther
        self._keys = place << _SPAN_BITS | span

    def locate(self, windows: Sequence[int], of_window: Sequence[NumberedRanges]) -> _Located:
        """Return the ranges of these windows, of which some ID has the Kafka partition, with their numbers of rows."""
        window = np.repeat(np.array(windows, np.int64), [len(each) for each in of_window])
        source, start, end, number = (
            np.concatenate([_NONE, *(getattr(each, name) for each in of_window)])
            for name in ("source", "start", "end", "number")
        )
        wanted = self._number(window, source)
        group = np.minimum(np.searchsorted(self._group, wanted), len(self._group) - 1)
        rows = np.flatnonzero((self._group[group] == wanted) & np.isin(source, self._sources))
        group = group[rows]
        first, after = (
            np.searchsorted(self._keys, group << _SPAN_BITS | np.clip(bound[rows] - self._base[group], 0, _LARGEST))
            for bound in (start, end)
        )
        return _Located(window[rows], number[rows], source[rows], after - first)

    def _number(self, window: np.ndarray, source: np.ndarray) -> np.ndarray:
        numbers: np.ndarray = window * (len(self._sources) + 1) + np.searchsorted(self._sources, source)
        return numbers


def _have_all(window: np.ndarray, flags: np.ndarray, windows: int) -> np.ndarray:
    """Return for which windows all rows are true."""
    have_all: np.ndarray = np.bincount(window[~flags], minlength=windows) == 0
    return have_all


def _find_regular(lines: WindowLines, window: np.ndarray, accounts: Sequence[Accounts]) -> np.ndarray:
    """Return which lines are in their window, and as its newest contract and its first leader epoch have them."""
    places = {name: place for place, name in enumerate(lines.contracts)}
    start, end, contract, epoch, is_blind = np.array([
        (max(each.start_ms, 0), each.end_ms, places.get(each.contracts[each.newest], -1),
         next(iter(each.pieces.ranges.of_epoch), 0), {*each.pieces.source.tolist()} <= {*each.blind.tolist()})
        for each in accounts
    ], np.int64).T  # fmt: skip
    event_ms = lines.event_ms
    regular: np.ndarray = lines.has_columns.copy()
    regular &= (event_ms >= start[window]) & (event_ms < end[window])
    regular &= lines.contract == contract[window]
    regular &= (lines.epoch == epoch[window]) | (is_blind[window] == 1)  # blind: judged by the ID alone
    return regular


def _sum_windows(landed: _Located, held: np.ndarray, sums: np.ndarray) -> Iterator[tuple[np.ndarray, PieceSums]]:
    """Yield what all records of a window sum up to, and those of each piece, from the sums of `held` ranges."""
    window = landed.window[held]
    first = np.flatnonzero(mark_changes(window))
    # A number means what is summed together within one window only, so that the key has the window, too.
    width = int(landed.number.max(initial=0)) + 1
    pieces = sum_by_piece(
        window * width + landed.number[held], np.full(len(held), -1, np.int32), landed.source[held], sums
    )
    bounds = np.append(np.searchsorted(pieces.piece, window[first] * width), len(pieces.piece)).tolist()
    piece = (pieces.piece % width).astype(np.int32)
    for records, (a, b) in zip(sum_groups(sums, first), pairwise(bounds), strict=True):
        yield records, PieceSums(piece[a:b], pieces.release[a:b], pieces.source[a:b], pieces.sums[a:b])
