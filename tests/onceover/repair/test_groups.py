"""The groups of a repair: bounded in windows and records, and nothing left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.repair.groups import count_records, group_windows

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WHOLE = OffsetRange(KafkaPartition("0a1b2c3d", 0), 0, 1000)


def claim(minute: int, records: int) -> ClaimedWindow:
    start = NOON + timedelta(minutes=minute)
    landings = (ClaimedLanding(1, ((WHOLE, Digest(records)),)),)
    return ClaimedWindow(1, start, start + timedelta(minutes=1), UUID(int=1), 1, landings, None)


@pytest.mark.parametrize(
    ("records", "sizes"),
    [([], []), ([1] * 7, [3, 3, 1]), ([60, 50, 50, 1], [1, 2, 1]), ([500, 1, 1], [1, 2]), ([1, 500], [1, 1])],
)
def test_groups_hold_every_window_within_both_bounds(records: list[int], sizes: list[int]) -> None:
    claimed = [claim(minute, number) for minute, number in enumerate(records)]
    groups = list(group_windows(claimed, count_records, most_windows=3, most_records=100))
    assert [len(group) for group in groups] == sizes
    assert [window for group in groups for window in group] == claimed
