from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceover.model.batch_plan import MAX_READ_AGAIN, Start, compute_starts, limit_replay, plan_ranges, plan_read_again
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, subtract

backlogs = st.dictionaries(st.integers(0, 8), st.integers(0, 1000), min_size=1)


@given(backlogs, st.integers(1, 2000))
def test_ranges_begin_at_the_position_and_take_their_limit(backlog: dict[int, int], most: int) -> None:
    starts = dict.fromkeys(backlog, 10)
    ranges = plan_ranges("00000001", starts, {p: 10 + n for p, n in backlog.items()}, most)
    assert all(r.start == 10 and 0 < len(r) <= backlog[r.source.kafka_partition] for r in ranges)
    assert sum(map(len, ranges)) == min(most, sum(backlog.values()))


def test_unused_share_goes_to_kafka_partitions_with_a_backlog() -> None:
    ranges = plan_ranges("00000001", {0: 0, 1: 0, 2: 0}, {0: 1, 1: 100, 2: 100}, 21)
    assert [len(r) for r in ranges] == [1, 10, 10]


def test_unused_share_is_left_under_the_plain_rule() -> None:
    ranges = plan_ranges("00000001", {0: 0, 1: 0, 2: 0}, {0: 1, 1: 100, 2: 100}, 21, fair=False)
    assert [len(r) for r in ranges] == [1, 7, 7]


@pytest.mark.parametrize("fair", [True, False])
def test_limit_below_partition_count_prefers_largest_backlog(fair: bool) -> None:
    at, end = {0: 0, 1: 0, 2: 0}, {0: 5, 1: 3, 2: 1}
    for _ in range(9):
        ranges = plan_ranges("00000001", at, end, 1, fair=fair)
        assert sum(map(len, ranges)) == 1
        at.update({r.source.kafka_partition: r.end for r in ranges})
        assert at[0] <= at[1] + 3, "none is left behind"
    assert at == end


def test_plan_with_nothing_to_read_has_no_range() -> None:
    assert plan_ranges("00000001", {0: 5}, {0: 5}, 100) == ()


def test_first_start_is_at_earliest_and_later_ones_resume() -> None:
    starts = compute_starts({0: 7}, {0: 3, 1: 4}, {0: 3, 1: 4}, {0: 9, 1: 9})
    assert starts == {0: Start(7, 7), 1: Start(4, 4)}


def test_first_start_may_be_at_the_end() -> None:
    assert compute_starts({}, {0: 9}, {0: 3}, {0: 9}) == {0: Start(9, 9)}


def test_stored_offset_at_either_end_of_the_log_is_within_it() -> None:
    assert compute_starts({0: 3, 1: 9}, {0: 3, 1: 3}, {0: 3, 1: 3}, {0: 9, 1: 9}) == {0: Start(3, 3), 1: Start(9, 9)}


def test_expired_stored_offset_moves_to_the_start_leaving_a_hole() -> None:
    assert compute_starts({0: 1}, {0: 3}, {0: 3}, {0: 9}) == {0: Start(at=3, origin=1)}


def test_stored_offset_beyond_the_end_moves_down_and_is_reported() -> None:
    assert compute_starts({0: 10}, {0: 3}, {0: 3}, {0: 9}) == {0: Start(at=9, origin=9, truncated_from=10)}


def test_replay_ends_at_the_next_bound_of_what_landed() -> None:
    bounds = {0: (0, 10, 20), 1: (5,)}
    assert limit_replay({0: 0, 1: 5, 2: 3}, {0: 30, 1: 9, 2: 7}, bounds) == {0: 10, 1: 9, 2: 7}
    assert limit_replay({0: 10, 1: 0}, {0: 15, 1: 9}, bounds) == {0: 15, 1: 5}


wanted_ranges = st.lists(
    st.builds(
        lambda p, start, n: OffsetRange(KafkaPartition("00000001", p), start, start + n),
        st.integers(0, 3),
        st.integers(0, 500),
        st.integers(0, 60),
    )
)


@given(wanted_ranges, st.integers(1, 200))
def test_batch_of_holes_is_a_bounded_part_of_what_is_wanted(wanted: list[OffsetRange], most: int) -> None:
    chosen = plan_read_again(wanted, most)
    assert sum(map(len, chosen)) <= most
    assert bool(chosen) == any(map(len, wanted))
    assert sum(map(len, coalesce(chosen))) == sum(map(len, chosen)), "no offset twice"
    assert subtract(chosen, wanted) == ()


def test_holes_of_two_kafka_partitions_share_a_batch() -> None:
    one, two = KafkaPartition("00000001", 0), KafkaPartition("00000001", 1)
    wanted = [OffsetRange(one, 0, 100), OffsetRange(two, 5, 8), OffsetRange(two, 9, 10)]
    assert plan_read_again(wanted, 20) == (OffsetRange(one, 0, 10), OffsetRange(two, 5, 8), OffsetRange(two, 9, 10))
    assert plan_read_again(wanted, 1) == (OffsetRange(one, 0, 1),)


def test_batch_of_holes_has_a_bounded_number_of_ranges() -> None:
    source = KafkaPartition("00000001", 0)
    wanted = [OffsetRange(source, 2 * n, 2 * n + 1) for n in range(10_000)]
    assert plan_read_again(wanted, 10_000) == tuple(wanted[:MAX_READ_AGAIN])
