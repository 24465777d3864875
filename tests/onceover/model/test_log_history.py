from __future__ import annotations

from collections.abc import Sequence

import pytest

from onceover.model.batch import RangeRead
from onceover.model.digest import Digest
from onceover.model.log_history import EpochSpan, Probe, find_divergence, find_overlaps, split_by_epoch
from onceover.model.offsets import KafkaPartition, OffsetRange

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
        ([span(0, 3, 1)], [1, 1, None, 2], None),
        ([span(0, 3, 1)], [1, None, 2, 2], 1),
        ([span(0, 3, None)], [2, 2, 2], None),
        ([], [2, 2, 2], None),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else None,
)
def test_divergence_begins_at_the_first_other_record(
    landed: list[EpochSpan], log: list[int | None], expected: int | None
) -> None:
    assert find_divergence(landed, OffsetRange(AT, 0, len(log)), make_probe(log)) == expected


def test_expired_offsets_are_not_compared() -> None:
    log = [9, 9, 1, 1]
    assert find_divergence([span(0, 4, 1)], OffsetRange(AT, 2, 4), make_probe(log)) is None


def test_unchanged_log_costs_two_reads_a_span() -> None:
    seen: list[int] = []
    probe = make_probe([1] * 10_000, seen)
    assert find_divergence([span(0, 10_000, 1)], OffsetRange(AT, 0, 10_000), probe) is None
    assert len(seen) == 2


def test_cut_is_found_by_bisection() -> None:
    seen: list[int] = []
    probe = make_probe([1] * 700 + [2] * 300, seen)
    assert find_divergence([span(0, 1000, 1)], OffsetRange(AT, 0, 1000), probe) == 700
    assert len(seen) < 20


def test_range_is_cut_at_the_first_offset_of_each_epoch() -> None:
    read = RangeRead(OffsetRange(AT, 0, 9), Digest(7), None, None, ((1, 2), (3, 5)))
    assert split_by_epoch(read) == (span(2, 5, 1), span(5, 9, 3))


def test_range_without_records_has_no_span() -> None:
    assert split_by_epoch(RangeRead(OffsetRange(AT, 0, 9), Digest(), None)) == ()


def test_overlap_counts_only_under_another_epoch() -> None:
    landed = [span(0, 4, 1), span(4, 8, 2)]
    assert find_overlaps([span(2, 6, 2)], landed) == (OffsetRange(AT, 2, 4),)
    assert find_overlaps([span(0, 4, 1)], landed) == ()
    assert find_overlaps([span(3, 5, None)], landed) == (OffsetRange(AT, 3, 5),)
    assert find_overlaps([span(4, 5, 2)], [span(4, 5, None)]) == (OffsetRange(AT, 4, 5),)
