"""Under each rule: every offset once, in order, and no shard that reads nothing."""

from __future__ import annotations

from math import lcm

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onceover.errors import UsageError
from onceover.model.batch_plan import LEAST_SHARD, PER_CORE, SHARDING, cut, cut_by_backlog, cut_by_lcm, cut_into_shards
from onceover.model.offsets import KafkaPartition, OffsetRange

SIZES = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 10**12)), max_size=12)
CORES = st.integers(1, 32)


def make_ranges(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange(KafkaPartition("0badcafe", p), 7, 7 + size) for p, size in enumerate(sizes)]


@pytest.mark.parametrize("rule", SHARDING)
@given(sizes=SIZES, cores=CORES)
def test_shards_cover_every_offset_once_in_order(rule: str, sizes: list[int], cores: int) -> None:
    shards = cut_into_shards(rule, make_ranges(sizes), cores)
    assert all(len(shard) for shard in shards)
    for whole in make_ranges(sizes):
        mine = [shard for shard in shards if shard.source == whole.source]
        at = whole.start
        for shard in mine:
            assert shard.start == at
            at = shard.end
        assert at == whole.end
        assert not mine or max(map(len, mine)) - min(map(len, mine)) <= 1


@given(sizes=SIZES.filter(lambda sizes: all(size > 1000 for size in sizes)), cores=CORES)
def test_lcm_cuts_each_range_alike_into_a_multiple_of_the_cores(sizes: list[int], cores: int) -> None:
    shards = cut_by_lcm(make_ranges(sizes), cores)
    if sizes:
        assert len(shards) == lcm(len(sizes), cores)
        assert len({sum(s.source == w.source for s in shards) for w in make_ranges(sizes)}) == 1


@given(sizes=SIZES, cores=CORES)
@example(sizes=[24_464_975], cores=29)  # floats made 59 shards of it
def test_backlog_shards_fit_a_cores_share_and_are_never_tiny(sizes: list[int], cores: int) -> None:
    shards = cut_by_backlog(make_ranges(sizes), cores)
    largest = max(LEAST_SHARD, -(-sum(sizes) // (PER_CORE * cores)))
    for whole in make_ranges(sizes):
        mine = [len(shard) for shard in shards if shard.source == whole.source]
        assert all(size <= largest for size in mine)
        assert len(mine) <= PER_CORE * cores
        assert len(mine) == 1 or all(size >= LEAST_SHARD // 2 for size in mine)
        assert bool(mine) == bool(len(whole))


def test_larger_shards_are_the_first() -> None:
    (whole,) = make_ranges([11])
    assert [(s.start, s.end) for s in cut(whole, 4)] == [(7, 10), (10, 13), (13, 16), (16, 18)]
    assert [len(s) for s in cut(whole, 40)] == [1] * 11
    assert cut(make_ranges([0])[0], 4) == []


def test_shards_are_in_proportion_to_the_backlog() -> None:
    shards = cut_by_backlog(make_ranges([80_002, 6_666, 6_666, 6_666]), 16)
    assert [sum(s.source.kafka_partition == p for s in shards) for p in range(4)] == [26, 3, 3, 3]
    assert [len(s) for s in cut_by_backlog(make_ranges([3]), 16)] == [3], "a handful is read at once"


def test_ranges_without_a_common_divisor_are_not_cut_to_pieces() -> None:
    assert len(cut_by_lcm(make_ranges([10_000] * 63), 16)) == 63 * 5
    assert len(cut_by_lcm(make_ranges([10_000] * 64), 16)) == 64


def test_zero_cores_are_refused() -> None:
    with pytest.raises(UsageError, match="0 cores"):
        cut_into_shards("lcm", make_ranges([5]), 0)
