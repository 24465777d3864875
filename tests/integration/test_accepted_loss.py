"""A loss that a person accepts: what raw has of it counts, but for a window whose raw has expired."""

from __future__ import annotations

import pytest
from tests.integration.extras import accept_loss, die_after, produce, repair, sum_up
from tests.integration.lane import Lane, Lanes, event
from tests.integration.planted_failures import count_certified, expire, list_gaps, minutes

from onceover.fault_points import Step
from onceover.ledger import drivers, expiries
from onceover.retention.expire import carry_out

pytestmark = pytest.mark.stack


def expire_window(lane: Lane, minute: int) -> None:
    """Expire one window's raw, as its retention does."""
    start = minutes(minute, minute + 5).start
    with lane.ledger() as ledger:
        files = [file for file in expiries.list_expirable(ledger, lane.name, 0) if file.window_start == start]
        assert expiries.mark_expired(ledger, lane.name, files, "test", "a test") == 1
        epoch = drivers.acquire(ledger, lane.name, "test")
        assert carry_out(ledger, epoch, lane.files()) == 1
        drivers.end_epoch(ledger, epoch)


@pytest.mark.rare
def test_accepted_loss_counts_where_raw_has_not_expired(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    lane.land([event(30, amount=1)])
    repair(lane)
    assert count_certified(lane) == 3
    expire_window(lane, 5)
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
