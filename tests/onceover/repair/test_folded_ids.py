"""IDs that lie in two windows, which no window's fold sees, are conflicts of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from onceover.model.unlanded import Unlanded
from onceover.repair.unlanded_runs import drop_repeated, end_orphans, find_repeated, sort_runs

from onceover.lines.accounts import BEYOND, KNOWN, Accounts
from onceover.lines.fold import fold
from onceover.lines.pieces import LandedRanges, cut_pieces
from onceover.lines.ranges import NO_RANGES, NumberedRanges, number_source
from onceover.lines.runs import find_runs
from onceover.lines.summary import WindowSummary
from onceover.lines.window_lines import WindowLines
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.repair.shared_ids import add_shared_conflicts, find_in_two
from onceover.repair.window_accounts import list_contested_ids

SOURCE, OTHER = KafkaPartition("00c0ffee", 0), KafkaPartition("00c0ffee", 7)
HOUR, NOON = 3_600_000, datetime(2026, 3, 1, 12, tzinfo=UTC)
Ids = Sequence[tuple[int, int]]  # offset and content


def at(start: int, end: int) -> OffsetRange:
    return OffsetRange(SOURCE, start, end)


def _lines(ids: Ids, event_ms: int) -> WindowLines:
    rows = len(ids)
    content = np.zeros((rows, 4), np.uint32)
    content[:, 3] = [each for _, each in ids]
    offset, zeros = np.array([n for n, _ in ids], np.int64), np.zeros(rows, np.int64)
    numbers, flags = content[:, 3].astype(np.uint64), np.zeros(rows, bool)
    source = zeros + number_source(SOURCE)
    return WindowLines(source, offset, zeros, zeros + event_ms, content, numbers, zeros, ~flags, flags, zeros, (b"V1",))


def _fold_unlanded(
    windows: Sequence[Ids], held: Sequence[OffsetRange] = (), most: int = 1000
) -> dict[datetime, WindowSummary]:
    known = NumberedRanges.of((piece, 0) for piece in held)
    own = NumberedRanges.of([(at(0, 90), KNOWN), (at(90, 99), BEYOND)])
    summaries = {}
    for n, ids in enumerate(windows):
        accounts = Accounts(
            n * HOUR, (n + 1) * HOUR, cut_pieces(_NONE, NO_RANGES), (b"V1",), 0, held=known, own=own, most_runs=most
        )
        summaries[NOON + timedelta(hours=n)] = fold(_lines(ids, n * HOUR), accounts).summary
    return summaries


_EMPTY = np.empty(0, np.int64)
_NONE = LandedRanges(_EMPTY, _EMPTY, _EMPTY, _EMPTY, np.empty(0, bool))


def _find(windows: Sequence[Ids], held: Sequence[OffsetRange] = ()) -> tuple[list[OffsetRange], list[Unlanded]]:
    repeated = find_repeated(_fold_unlanded(windows, held))
    summaries = _fold_unlanded(windows, (*held, *repeated))
    return list(repeated), [drop_repeated(sort_runs(summary), repeated) for summary in summaries.values()]


def test_orphan_in_two_windows_is_a_conflict_of_both() -> None:
    first = [(n, n) for n in range(10)]
    repeated, (one, two, three) = _find([first, [(4, 4), (5, 9), (20, 1)], [(20, 1), (30, 1)]])
    assert repeated == [at(4, 6), at(20, 21)]
    assert (one.orphans, one.conflicts) == ((at(0, 4), at(6, 10)), 2)
    assert (two.orphans, two.conflicts) == ((), 3)
    assert (three.orphans, three.conflicts) == ((at(30, 31),), 1)
    assert one.parts[0].digest == Digest(8, 0, 0, 0, sum(range(10)) - 9)
    assert one.pending == two.pending == ()


def test_orphan_with_several_contents_elsewhere_is_a_conflict() -> None:
    repeated, (one, two) = _find([[(4, 1), (4, 2)], [(4, 1), (5, 1)]])
    assert repeated == [at(4, 5)]
    assert (one.orphans, one.conflicts, two.orphans, two.conflicts) == ((), 1, (at(5, 6),), 1)


def test_pending_id_in_two_windows_is_no_conflict() -> None:
    repeated, (one, two) = _find([[(4, 1), (4, 2), (5, 1)], [(4, 1), (6, 1)]], [at(4, 5)])
    assert repeated == []
    assert (one.pending, one.orphans, one.conflicts) == ((at(4, 5),), (at(5, 6),), 0)
    assert (two.pending, two.orphans, two.conflicts) == ((at(4, 5),), (at(6, 7),), 0)


def test_id_beyond_the_log_in_two_windows_stays_that() -> None:
    repeated, (one, two) = _find([[(95, 1), (95, 2), (99, 1)], [(95, 1), (95, 2)]])
    assert repeated == []
    assert (one.beyond, one.conflicts, one.foreign) == ((at(95, 96),), 0, 1)
    assert (two.beyond, two.conflicts) == ((at(95, 96),), 0)


def test_orphan_is_not_adopted_while_another_window_may_have_it() -> None:
    sparse = [(n, n) for n in range(0, 80, 2)]
    summaries = _fold_unlanded([sparse, [(2, 2), (20, 2), (70, 70)], [(75, 5)]], most=10)
    assert [summary.runs.is_whole for summary in summaries.values()] == [False, True, True]
    ended = end_orphans(summaries)
    orphans = [sort_runs(summary).orphans for summary in ended.values()]
    assert orphans == [tuple(at(n, n + 1) for n in range(0, 20, 2)), (at(2, 3),), ()]
    assert find_repeated(ended) == (at(2, 3),)
    again = end_orphans(_fold_unlanded([sparse, [(2, 2), (70, 70)], [(75, 5)]], [at(2, 3)], most=100), (0, 20))
    assert [sort_runs(each).orphans for each in again.values()] == [(), (), ()]


def _rebuild(windows: Mapping[datetime, Ids]) -> dict[datetime, RebuiltWindow]:
    zero, all_ids = np.zeros(1, np.int64), NumberedRanges.of([(at(0, 100), 0)])
    landed = LandedRanges(zero, zero + number_source(SOURCE), zero, zero + 100, zero > 0)
    rebuilt, listed = {}, {}
    for n, (start, ids) in enumerate(windows.items()):
        accounts = Accounts(
            n * HOUR, (n + 1) * HOUR, cut_pieces(landed, NO_RANGES), (b"V1",), 0, accounted=all_ids, listed=all_ids
        )
        summary = fold(_lines(ids, n * HOUR), accounts).summary
        listed[start] = summary.listed
        contested = tuple(list_contested_ids(summary.contested))
        rebuilt[start] = RebuiltWindow(1, 0, 0, 0, 0, summary.conflicts, summary.misdated, 1, contested=contested)
    return add_shared_conflicts(rebuilt, listed)


@given(st.lists(st.sets(st.tuples(st.sampled_from([SOURCE, OTHER]), st.integers(0, 12))), max_size=4))
def test_ids_in_two_windows_are_found_by_their_runs(windows: list[set[tuple[KafkaPartition, int]]]) -> None:
    runs = []
    for ids in windows:
        source = np.array([number_source(source) for source, _ in sorted(ids)], np.int64)
        offset = np.array([n for _, n in sorted(ids)], np.int64)
        runs.append(find_runs(np.zeros(len(ids), np.int8), source, offset, np.zeros((len(ids), 4), np.uint32)))
    found = [(piece.source, n) for piece in find_in_two(runs) for n in range(piece.start, piece.end)]
    assert found == sorted({each for ids in windows for each in ids if sum(each in other for other in windows) > 1})


def test_shared_id_in_two_windows_is_a_conflict_or_misdated() -> None:
    later = NOON + timedelta(hours=1)
    found = _rebuild({NOON: [(4, 1), (5, 1), (6, 1), (6, 2)], later: [(5, 1), (6, 3), (7, 1)]})
    one, two = found[NOON], found[later]
    assert (one.conflicts, one.misdated) == (1, 2), "6 conflicts in the first window alone"
    assert (two.conflicts, two.misdated) == (1, 2)
    assert [each.offset for each in one.contested] == [each.offset for each in two.contested] == [5, 6]
    assert one.contested == two.contested
    assert [len(each.contents) for each in one.contested] == [2, 3]
    alone = _rebuild({NOON: [(4, 1)], later: [(5, 1)]})
    assert alone == {start: replace(each, contested=()) for start, each in alone.items()}
