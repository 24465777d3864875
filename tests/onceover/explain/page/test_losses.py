"""Losses that a person may accept: filled in from the findings, and not offered again once they are accepted."""

from __future__ import annotations

from datetime import UTC, datetime

from onceover.explain.page.losses import Loss, list_losses
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.windowing import Windowing

SOURCE = KafkaPartition("1f2e3d4c", 0)
LOST = OffsetRange(SOURCE, 5, 12)
NOON = datetime(2013, 1, 5, 12, tzinfo=UTC)


def test_expired_gap_is_filled_in_with_its_likely_windows() -> None:
    likely = ["2013-01-05T12:00Z", "2013-01-05T12:10Z"]
    gaps = [
        {"offsets": ["1f2e3d4c", 0, 5, 12], "reason": "expired", "likely_windows": likely},
        {"offsets": ["1f2e3d4c", 0, 20, 21], "reason": "lost", "likely_windows": []},
    ]
    hole = {"kind": "hole", "evidence": {"gaps": gaps}}
    end = NOON.replace(minute=15)
    assert list_losses([hole], [LOST], Windowing(5)) == [Loss(LOST, "expired", False, NOON, end)]
    assert list_losses([hole], [], Windowing(5)) == [Loss(LOST, "expired", True, NOON, end)]


def test_offsets_that_nothing_reads_have_their_kind() -> None:
    unreadable = {"kind": "unreadable offsets", "evidence": {"stopped": [{"offsets": ["1f2e3d4c", 0, 5, 12]}]}}
    hole_unread = {"kind": "hole", "evidence": {"frontier_and_reach": [["1f2e3d4c", 0, 5, 12]]}}
    assert list_losses([unreadable, hole_unread], [LOST], Windowing(5)) == [Loss(LOST, "unreadable")]
