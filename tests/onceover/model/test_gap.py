"""Losses among the gaps of holes: which of them are one."""

from __future__ import annotations

import pytest

from onceover.model.gap import Gap, Reason, merge_losses
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
