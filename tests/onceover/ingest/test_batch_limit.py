"""A batch that was too large is halved until it fits, and grows again once some of that size have landed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from onceover.ingest.batch_limit import BatchLimit
from onceover.model.offsets import KafkaPartition, OffsetRange

RANGES = [OffsetRange(KafkaPartition("00c0ffee", n), 100, 100 + length) for n, length in enumerate((900, 90, 10))]


def test_ranges_are_clipped_in_proportion_and_never_empty() -> None:
    limit = BatchLimit()
    assert limit.clip(RANGES) == tuple(RANGES)
    limit.halve(RANGES, "rows")
    assert [(each.start, len(each)) for each in limit.clip(RANGES)] == [(100, 450), (100, 45), (100, 5)]
    sizes = []
    for _ in range(10):
        limit.halve(limit.clip(RANGES), "rows")
        sizes.append([len(each) for each in limit.clip(RANGES)])
    assert all(sum(smaller) <= max(1, sum(size) // 2 + 1) for size, smaller in pairwise(sizes))
    assert all(map(all, sizes))
    assert sizes[-1] == [1], "one record is never too large"


def test_limit_grows_until_it_limits_nothing() -> None:
    limit = BatchLimit()
    limit.halve(RANGES, "rows")
    limit.halve(limit.clip(RANGES), "rows")
    sizes = []
    for _ in range(18):
        clipped = limit.clip(RANGES)
        sizes.append(sum(map(len, clipped)))
        limit.relax(clipped)
    assert sizes == [*[249] * 8, *[500] * 8, 1000, 1000]


def test_limit_outlasts_batches_that_do_not_fill_it() -> None:
    limit = BatchLimit()
    limit.halve(RANGES, "rows")
    before = limit.clip(RANGES)
    for _ in range(100):
        limit.relax(RANGES[2:])
    assert limit.clip(RANGES) == before


def test_halved_limit_is_logged_with_the_reason_and_size(caplog: pytest.LogCaptureFixture) -> None:
    BatchLimit().halve(RANGES, "a task has 9 windows")
    (line,) = caplog.messages
    assert line == "a batch of 1,000 offsets is too large, the next reads at most 500: a task has 9 windows"


def test_size_that_is_too_large_is_tried_ever_less_often() -> None:
    limit, too_large, landed = BatchLimit(), 0, 0
    for _ in range(500):
        clipped = limit.clip(RANGES)
        if sum(map(len, clipped)) > 300:
            too_large += 1
            limit.halve(clipped, "rows")
        else:
            landed += 1
            limit.relax(clipped)
    assert landed > 480, "one that fits is half as large as one that does not"
    assert 5 < too_large < 15
    for _ in range(300):
        limit.relax(limit.clip(RANGES))
    assert limit.clip(RANGES) == tuple(RANGES), "it grows again"
