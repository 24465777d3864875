"""Records that only raw holds: found by a repair, adopted, and certified with all others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.lane import NOON_MS, Lane, event
from tests.integration.planted_failures import count_certified, expire

from onceover.model.window import from_ms

pytestmark = pytest.mark.stack
Lanes = Callable[..., Lane]


def repair(lane: Lane) -> None:
    """Detect and repair, as the schedule does, until nothing is requested."""
    for _ in range(3):
        request_id = lane.detect().request_id
        if request_id is None:
            return
        assert lane.repair(request_id).failed == ()


def forget_below(lane: Lane, offset: int) -> None:
    """Make the ledger one that has never known the offsets below: its first batch, as if restored or lost before."""
    with lane.ledger() as ledger, ledger.transaction():
        ledger.execute(
            "DELETE FROM onceover.landing_part USING onceover.landing l, onceover.batch_range r "
            "WHERE l.landing_id = landing_part.landing_id AND r.batch_id = l.batch_id AND l.pipeline = %s "
            "AND r.end_offset <= %s", [lane.name, offset],
        )  # fmt: skip
        ledger.execute(
            "DELETE FROM onceover.landing l USING onceover.batch_range r "
            "WHERE r.batch_id = l.batch_id AND l.pipeline = %s AND r.end_offset <= %s", [lane.name, offset],
        )  # fmt: skip
        ledger.execute(
            "DELETE FROM onceover.batch_range r USING onceover.batch b "
            "WHERE r.batch_id = b.batch_id AND b.pipeline = %s AND r.end_offset <= %s", [lane.name, offset],
        )  # fmt: skip
        ledger.execute("UPDATE onceover.kafka_partition SET origin = %s WHERE pipeline = %s", [offset, lane.name])


def test_orphans_of_closed_windows_are_adopted_and_certified(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n % 10, amount=n) for n in range(50)])
    with lane.driver() as driver:
        driver.turn()
    lane.produce([event(n % 10, amount=n) for n in range(50, 100)])
    lane.ingest()
    forget_below(lane, 50)
    expire(lane, 50)
    repair(lane)
    by_window = {float(start): [n for n in range(100) if start <= n % 10 < start + 5] for start in (0, 5)}
    assert lane.aggregates() == {(start, "a"): (len(ns), sum(ns), max(ns)) for start, ns in by_window.items()}
    assert count_certified(lane) == 2
    assert lane.detect().findings == ()
    assert lane.verify(from_ms(NOON_MS))["equal"]
