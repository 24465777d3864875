"""Losses that a person may not accept, because raw holds the records: in whatever file, and with the way out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.extras import accept_loss, die_after, produce, repair, sum_up
from tests.integration.lane import Lane, event
from tests.integration.planted_failures import count_certified, expire, list_gaps, minutes

from onceover.errors import UsageError
from onceover.fault_points import Step
from onceover.ledger import drivers, expiries
from onceover.model.window import Window
from onceover.retention.expire import carry_out

pytestmark = pytest.mark.stack
Lanes = Callable[..., Lane]


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
def test_loss_is_refused_while_any_file_holds_its_records(lanes: Lanes) -> None:
    lane = lanes()
    produce(lane, range(50))
    lane.produce([event(30, amount=1)])
    lane.ingest()
    repair(lane)
    assert count_certified(lane) == 3
    expire_window(lane, 5)
    late = [*range(100, 105), *range(105, 110)]
    produce(lane, late)
    lane.produce([event(11, amount=200)])
    die_after(lane, Step.APPENDED)
    expire(lane, 62)
    with lane.driver() as driver:
        for _ in range(3):
            driver.turn()
    assert list_gaps(lane) == [(51, 62, "expired")]
    for start, end, window in ((51, 56, "12:00"), (56, 61, "12:05"), (61, 62, "12:10")):
        with pytest.raises(UsageError, match=f"raw holds its record, in the file of window 2026-03-01T{window}Z"):
            accept_loss(lane, start, end)
    assert [each.window for each in lane.plan(minutes(0, 15))] == [
        Window.at(minutes(m, m + 5).start, 5) for m in (0, 10, 5)
    ]
    # Without a sweep: the command that each refusal names, or the schedule's detection.
    for start in (0, 5, 10):
        request_id = lane.detect(minutes(start, start + 5)).request_id
        assert lane.repair(request_id or 0).failed == ()
    assert list_gaps(lane) == []
    lane.ingest()
    repair(lane)
    counted = sum_up([*range(50), *late])
    assert lane.aggregates() == counted | {(30.0, "a"): (1, 1, 1), (10.0, "a"): (1, 200, 200)}
    assert (lane.detect().failed, count_certified(lane)) == ((), 3)
