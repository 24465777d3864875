"""A loss that a person accepts: what raw has of it counts, but for a window whose raw has expired."""

from __future__ import annotations

import pytest
from tests.integration.compaction import FIVE_PAST, expire_window
from tests.integration.extras import accept_loss, die_after, produce, repair, sum_up
from tests.integration.lane import Lanes, event
from tests.integration.planted_failures import count_certified, expire, list_gaps

from onceover.fault_points import Step

pytestmark = pytest.mark.stack


@pytest.mark.rare
def test_accepted_loss_counts_where_raw_has_not_expired(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    lane.land([event(30, amount=1)])
    repair(lane)
    assert count_certified(lane) == 3
    expire_window(lane, FIVE_PAST)
    produce(lane, range(100, 110))
    lane.produce([event(11, amount=200)])
    die_after(lane, Step.APPENDED)
    expire(lane, 62)
    lane.turn(3)
    assert list_gaps(lane) == [(51, 62, "expired")]
    accept_loss(lane, 51, 62)
    lane.ingest()
    repair(lane)
    counted = sum_up([*range(50), *range(100, 105)])
    assert lane.aggregates() == counted | {(30.0, "a"): (1, 1, 1), (10.0, "a"): (1, 200, 200)}
    assert (list_gaps(lane), lane.detect().failed, count_certified(lane)) == ([], (), 3)
