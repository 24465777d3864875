"""Gaps of holes: which losses are one, and which holes are read together."""

from __future__ import annotations

import pytest

from onceover.model.gap import Gap, Reason, classify_gaps, join_near, merge_losses
from onceover.model.offsets import KafkaPartition, OffsetRange

ZERO, ONE = KafkaPartition("0a1b2c3d", 0), KafkaPartition("0a1b2c3d", 1)
LOST, EXPIRED, MARKER, ABORTED = Reason.LOST, Reason.EXPIRED, Reason.MARKER, Reason.ABORTED


def gap(start: int, end: int, reason: Reason, source: KafkaPartition = ZERO) -> Gap:
    return Gap(OffsetRange(source, start, end), reason)


@pytest.mark.parametrize(
    ("gaps", "merged"),
    [
        ([gap(0, 5, LOST), gap(5, 6, MARKER), gap(6, 9, LOST)], [gap(0, 9, LOST)]),
        ([gap(0, 5, LOST), gap(5, 6, MARKER), gap(6, 9, ABORTED), gap(9, 10, MARKER)], [gap(0, 5, LOST)]),
        ([gap(0, 5, EXPIRED), gap(5, 7, LOST)], [gap(0, 5, EXPIRED), gap(5, 7, LOST)]),
        ([gap(0, 5, LOST), gap(6, 9, LOST)], [gap(0, 5, LOST), gap(6, 9, LOST)]),
        ([gap(0, 5, LOST), gap(6, 7, MARKER), gap(7, 9, LOST)], [gap(0, 5, LOST), gap(7, 9, LOST)]),
        ([gap(0, 5, LOST), gap(5, 6, MARKER), gap(7, 9, LOST)], [gap(0, 5, LOST), gap(7, 9, LOST)]),
        ([gap(0, 5, LOST), gap(5, 9, LOST, ONE)], [gap(0, 5, LOST), gap(5, 9, LOST, ONE)]),
        ([gap(0, 1, MARKER), gap(1, 2, ABORTED)], []),
    ],
)
def test_losses_apart_only_by_empty_offsets_are_one(gaps: list[Gap], merged: list[Gap]) -> None:
    assert merge_losses(gaps) == tuple(merged)
    assert merge_losses(reversed(gaps)) == tuple(merged)


def test_holes_near_one_another_are_one_group() -> None:
    ranges = [OffsetRange(ZERO, 0, 2), OffsetRange(ZERO, 7, 8), OffsetRange(ZERO, 14, 20), OffsetRange(ONE, 20, 21)]
    groups = (tuple(ranges[:2]), (ranges[2],), (ranges[3],))
    assert join_near(reversed(ranges), near=5) == groups
    assert join_near([], near=5) == ()


def test_runs_beyond_the_hole_leave_its_gaps_alone() -> None:
    delivered = [OffsetRange(ZERO, 0, 4), OffsetRange(ZERO, 5, 7), OffsetRange(ZERO, 12, 20)]
    uncommitted = [OffsetRange(ZERO, 0, 4), OffsetRange(ZERO, 5, 10), OffsetRange(ZERO, 12, 20)]
    gaps = classify_gaps(OffsetRange(ZERO, 3, 13), delivered, uncommitted, compacted=False)
    assert gaps == (
        gap(3, 4, LOST), gap(4, 5, MARKER), gap(5, 7, LOST), gap(7, 10, ABORTED), gap(10, 12, MARKER),
        gap(12, 13, LOST),
    )  # fmt: skip
