"""Bits that flip in the ledger itself: in the control row of a window, and in its certificate."""

from __future__ import annotations

import pytest
from tests.integration.extras import land, repair, sum_up
from tests.integration.lane import Lanes
from tests.integration.planted_failures import count_certified

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
OF_DIGEST = ("records", "high1", "low1", "high2", "low2")
FLIP = "UPDATE onceover.{} SET {} = {} # 1 WHERE pipeline = %s AND window_start = '2026-03-01T12:00Z'"


@pytest.mark.parametrize("table", ['"window"', "certificate"], ids=["control row", "certificate"])
def test_bit_flipped_in_the_ledger_is_found_and_repaired(lanes: Lanes, table: str) -> None:
    lane = land(lanes, 10)
    for column in OF_DIGEST:
        with lane.ledger() as ledger:
            assert ledger.execute(FLIP.format(table, column, column).encode(), [lane.name]).rowcount > 0
        (differing,) = lane.sweep().differing
        assert differing.findings, column
        repair(lane)
        assert count_certified(lane) == 2
        assert lane.sweep().differing == ()
    assert lane.aggregates() == sum_up(range(10))
    assert lane.audit()["equal"]
