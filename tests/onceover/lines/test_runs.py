"""Runs of parts add up to those of the whole; beyond a number they are left out, the last kinds first."""

from __future__ import annotations

from functools import reduce
from operator import add
from random import Random

import numpy as np
import pytest

from onceover.lines.ranges import number_source
from onceover.lines.runs import Runs, find_runs
from onceover.lines.verdicts import CLASHING, EXTRA, STRAY
from onceover.model.log_history import NO_EPOCH
from onceover.model.offsets import KafkaPartition

SOURCES = [number_source(KafkaPartition("00c0ffee", n)) for n in (0, 7)]
KINDS = (EXTRA, STRAY, CLASHING)
Reading = tuple[int, int, int]  # source, epoch, offset


def _find(kinds: dict[Reading, int]) -> Runs:
    order = sorted(kinds, key=lambda each: (each[0], each[2], each[1]))  # a fold finds readings in the order of IDs
    source, epoch, offset = np.array(order, np.int64).reshape(-1, 3).T
    return find_runs(np.array([kinds[each] for each in order]), source, epoch, offset)


def _list(runs: Runs, kind: int) -> list[Reading]:
    return [
        (number_source(span.offsets.source), span.leader_epoch, offset)
        for span in runs.list_spans(kind)
        if span.leader_epoch is not None
        for offset in range(span.offsets.start, span.offsets.end)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_parts_add_up_to_the_first_ones_of_the_whole(seed: int) -> None:
    random = Random(seed)
    share = random.choice([1.0, 0.5])
    every = [(source, epoch, n) for source in SOURCES for epoch in (NO_EPOCH, 0, 5) for n in range(100)]
    readings = [each for each in every if random.random() < share]
    kinds = {each: random.choice([EXTRA, EXTRA, STRAY, CLASHING]) for each in readings}
    parts = [{each: kind for each, kind in kinds.items() if each[2] % 10 % 3 == n} for n in range(3)]
    runs = reduce(add, map(_find, parts))
    assert {kind: _list(runs, kind) for kind in KINDS} == {
        kind: [each for each in readings if kinds[each] == kind] for kind in KINDS
    }
    assert (len(runs), runs.is_whole) == (len(_find(kinds)), True), "those that touch are joined"
    listed = [(kind, span) for kind in KINDS for span in runs.list_spans(kind)]
    for most in (1, len(runs) // 2, len(runs), 10_000):
        taken = runs.take(most)
        assert [(kind, span) for kind in KINDS for span in taken.list_spans(kind)] == listed[:most]
        assert taken.is_whole == (most >= len(runs))
        assert (taken + _find({})).is_whole == taken.is_whole
