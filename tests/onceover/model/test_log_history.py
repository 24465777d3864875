from __future__ import annotations

from collections.abc import Sequence

import pytest

from onceover.errors import TransientError
from onceover.model.log_history import (
    NO_EPOCH,
    EpochSpan,
    Probe,
    cut_at_epochs,
    find_divergence,
    intersect_spans,
    join_spans,
    order_epochs,
    subtract_spans,
)
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce

AT = KafkaPartition("0000000a", 0)


def span(start: int, end: int, epoch: int | None) -> EpochSpan:
    return EpochSpan(OffsetRange(AT, start, end), epoch)


def make_probe(log: Sequence[int | None], seen: list[int] | None = None) -> Probe:
    """A log by its epochs; None is an offset without a record."""

    def probe(offset: int) -> tuple[int, int] | None:
        if seen is not None:
            seen.append(offset)
        return next(((at, epoch) for at, epoch in enumerate(log) if at >= offset and epoch is not None), None)

    return probe


@pytest.mark.parametrize(
    ("landed", "log", "expected"),
    [
        ([span(0, 4, 1)], [1, 1, 1, 1], None),
        ([span(0, 4, 1)], [1, 1, 1, 1, 2, 2], None),
        ([span(0, 4, 1)], [1, 1, 2, 2, 2], 2),
        ([span(0, 4, 1)], [2, 2, 2, 2], 0),
        ([span(0, 4, 1)], [1, 1], None),
        ([span(0, 4, 1), span(4, 6, 2)], [1, 1, 1, 3, 3, 3], 3),
        ([span(0, 4, 1), span(2, 4, 2)], [1, 1, 2, 2], None),
        ([span(0, 4, 1), span(2, 3, 2)], [1, 1, 2, 2], 3),
        ([span(0, 4, 1), span(2, 4, 2), span(3, 4, 3)], [1, 1, 3, 3], 2),
        ([span(0, 8, 1), span(2, 8, 3)], [1, 1, 1, 2, 3, 3, 3, 3], 3),
        ([span(0, 3, 1)], [1, 1, None, 2], None),
        ([span(0, 3, 1)], [1, None, 2, 2], 1),
        ([span(0, 3, None)], [2, 2, 2], None),
        ([span(0, 5, 2), span(5, 8, 3), span(5, 10, 2)], [2] * 10, None),
        ([span(0, 5, 2), span(5, 8, 3), span(5, 10, 2)], [2] * 5 + [3] * 3, None),
        ([span(0, 5, 2), span(5, 8, 3), span(5, 10, 2)], [2] * 5 + [3] * 5, 8),
        ([span(0, 3, 1), span(3, 5, NO_EPOCH)], [1, 1, 1, None, None, 1], None),
        ([span(3, 5, NO_EPOCH)], [1, 1, 1, None, 2, 2], 3),
        ([span(0, 3, 2), span(1, 2, None)], [2, 1, 2], None),
        ([], [2, 2, 2], None),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else None,
)
def test_divergence_begins_at_the_first_other_record(
    landed: list[EpochSpan], log: list[int | None], expected: int | None
) -> None:
    current = coalesce(each.offsets for each in landed)
    assert find_divergence(landed, current, make_probe(log)) == expected


def test_only_current_offsets_are_compared() -> None:
    log = [9, 9, 1, 1, 9, 9, 1, 9]
    current = [OffsetRange(AT, 2, 4), OffsetRange(AT, 6, 7)]
    assert find_divergence([span(0, 8, 1)], current, make_probe(log)) is None


def test_unchanged_log_costs_two_reads_a_span() -> None:
    seen: list[int] = []
    probe = make_probe([1] * 10_000, seen)
    assert find_divergence([span(0, 10_000, 1)], [OffsetRange(AT, 0, 10_000)], probe) is None
    assert len(seen) == 2


def test_cut_is_found_by_bisection() -> None:
    seen: list[int] = []
    probe = make_probe([1] * 700 + [2] * 300, seen)
    assert find_divergence([span(0, 1000, 1)], [OffsetRange(AT, 0, 1000)], probe) == 700
    assert len(seen) < 20


def test_range_is_cut_at_the_first_offset_of_each_epoch() -> None:
    cut = cut_at_epochs(OffsetRange(AT, 0, 9), ((1, 2), (3, 5)))
    assert cut == (span(0, 5, 1), span(5, 9, 3)), "from the range's start on, so that ranges join"


def test_leader_that_came_back_within_a_range_is_cut_too() -> None:
    assert cut_at_epochs(OffsetRange(AT, 4, 9), order_epochs({2: (6, 8), 3: (4, 5)})) == (span(4, 6, 3), span(6, 9, 2))


def test_log_that_was_cut_while_it_was_read_is_read_again() -> None:
    with pytest.raises(TransientError, match="was cut while offsets 1,000 and later ones were read"):
        order_epochs({2: (1_000, 9_000), 3: (4_000, 5_000)})


def test_records_without_an_epoch_among_others_leave_it_unknown() -> None:
    assert order_epochs({2: (0, 9), NO_EPOCH: (4, 5)}) == ()


def test_offsets_without_records_join_ranges_of_one_epoch() -> None:
    ranges = [span(0, 4, 1), span(4, 5, NO_EPOCH), span(5, 9, 1), span(9, 12, 2), span(20, 21, 2)]
    assert join_spans(ranges) == [span(0, 9, 1), span(9, 12, 2), span(20, 21, 2)]


def test_cut_before_offsets_without_records_is_found() -> None:
    log = [1, 1, 1, 1, 1, 2, None]
    assert find_divergence([span(0, 7, 1)], [OffsetRange(AT, 0, 7)], make_probe(log)) == 5


def test_twenty_thousand_spans_cost_two_reads_each() -> None:
    landed = [span(n, n + 2, n) for n in range(0, 40_000, 2)]
    seen: list[int] = []

    def probe(offset: int) -> tuple[int, int]:
        seen.append(offset)
        return offset, offset // 2 * 2

    assert find_divergence(landed, [OffsetRange(AT, 0, 40_000)], probe) is None
    assert len(seen) == 40_000, "two reads a span"


def test_ranges_between_markers_cost_two_reads_together() -> None:
    """As a rebuild lists them: records first, then what had none."""
    records = [span(n, n + 2, 1) for n in range(0, 30_000, 3)]
    markers = [span(n, n + 1, NO_EPOCH) for n in range(2, 30_000, 3)]
    seen: list[int] = []

    def probe(offset: int) -> tuple[int, int]:
        seen.append(offset)
        return offset + (offset % 3 == 2), 1

    assert find_divergence([*records, *markers], [OffsetRange(AT, 0, 30_000)], probe) is None
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("read", "shared", "rest"),
    [
        (span(2, 6, 2), [span(4, 6, 2)], [span(2, 4, 2)]),
        (span(0, 4, 1), [span(0, 4, 1)], []),
        (span(3, 5, 7), [], [span(3, 5, 7)]),
        (span(3, 5, None), [span(3, 5, None)], []),
        (span(7, 9, NO_EPOCH), [span(7, 8, NO_EPOCH)], [span(8, 9, NO_EPOCH)]),
    ],
)
def test_readings_are_the_same_only_under_one_epoch(
    read: EpochSpan, shared: list[EpochSpan], rest: list[EpochSpan]
) -> None:
    landed = [span(0, 4, 1), span(4, 8, 2)]
    assert (intersect_spans([read], landed), subtract_spans([read], landed)) == (shared, rest)
    for epoch in (None, NO_EPOCH):
        assert intersect_spans([read], [span(0, 20, epoch)]) == [read]
        assert subtract_spans([read], [span(0, 20, epoch)]) == []
