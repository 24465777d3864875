"""Runs beyond a number are left out, so that of the orphans that are left all is known up to an ID."""

from __future__ import annotations

from functools import reduce
from operator import add
from random import Random

import numpy as np
import pytest

from onceover.lines.ranges import number_source
from onceover.lines.runs import LAST_ID, Runs, find_runs
from onceover.lines.verdicts import ORPHAN, PENDING, STRAY
from onceover.model.offsets import KafkaPartition, OffsetRange

SOURCES = [KafkaPartition("00c0ffee", 0), KafkaPartition("00c0ffee", 7)]
Id = tuple[int, int]


def _find(kinds: dict[Id, int]) -> Runs:
    order = sorted(kinds, key=lambda each: (kinds[each], each))
    columns = [[kinds[each] for each in order], [source for source, _ in order], [offset for _, offset in order]]
    kind, source, offset = (np.array(column, np.int64) for column in columns)
    first = np.lexsort((offset, source))  # a fold finds IDs in their order
    content = np.ones((len(order), 4), np.uint32)
    return find_runs(kind[first], source[first], offset[first], content)


def _list(runs: Runs, kind: int) -> set[Id]:
    ranges = [(each, digest) for each, digest in runs.list_ranges(kind)]
    assert all(len(each) == digest.records == digest.low2 for each, digest in ranges)
    return {(number_source(each.source), offset) for each, _ in ranges for offset in range(each.start, each.end)}


@pytest.mark.parametrize("seed", range(20))
def test_orphans_are_all_there_up_to_where_they_end(seed: int) -> None:
    random = Random(seed)
    share = random.choice([1.0, 0.5])
    ids = [(number_source(source), n) for source in SOURCES for n in range(300) if random.random() < share]
    kinds = {each: random.choice([STRAY, PENDING, ORPHAN, ORPHAN]) for each in ids}
    most = random.choice([1, 10, 50, 80, 10_000])
    share_of = [0, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    parts = [{each: kind for each, kind in kinds.items() if share_of[each[1] % 10] == n} for n in range(3)]
    taken = [_find(part).take(most) for part in parts]
    runs = reduce(add, taken)
    assert len(runs) <= 3 * most
    for kind in (STRAY, PENDING):
        assert _list(runs, kind) <= {each for each in ids if kinds[each] == kind}
    orphans = {each for each in ids if kinds[each] == ORPHAN}
    assert _list(runs, ORPHAN) == {each for each in orphans if each < runs.until}
    assert runs.is_whole == all(each.is_whole for each in taken)
    if runs.is_whole:
        assert [_list(runs, kind) for kind in (STRAY, PENDING)] == [
            {each for each in ids if kinds[each] == kind} for kind in (STRAY, PENDING)
        ]
    else:
        assert _list(runs, ORPHAN), "each round adopts some"


def test_orphans_are_taken_before_other_kinds() -> None:
    source = number_source(SOURCES[0])
    runs = _find({(source, n): ORPHAN if n > 100 else PENDING for n in range(0, 200, 2)})
    some = runs.take(60)
    assert (len(_list(some, ORPHAN)), len(_list(some, PENDING)), some.is_whole, some.until) == (49, 11, False, LAST_ID)
    few = runs.take(10)
    assert (few.until, few.list_ranges(PENDING)) == ((source, 122), [])
    assert [each for each, _ in few.list_ranges(ORPHAN)] == [
        OffsetRange(SOURCES[0], n, n + 1) for n in range(102, 122, 2)
    ]
    assert runs.take(100) is runs
