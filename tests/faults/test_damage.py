"""Bytes that are lost or change: appends that end after any byte, bits that flip in the ledger itself."""

from __future__ import annotations

import pytest
from tests.faults.ends import end_lease
from tests.integration.events import event
from tests.integration.extras import land, repair, sum_up
from tests.integration.kills import kill_after
from tests.integration.lane import Lanes
from tests.integration.planted_failures import count_certified

from onceover.fault_points import Step

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
OF_DIGEST = ("records", "high1", "low1", "high2", "low2")
FLIP = "UPDATE onceover.{} SET {} = {} # 1 WHERE pipeline = %s AND window_start = '2026-03-01T12:00Z'"
WINDOWS = 250


def test_append_torn_after_any_byte_costs_no_record(lanes: Lanes) -> None:
    """Each window's file is cut after one byte more than that of the window before."""
    lane = lanes()
    lane.produce([event(5 * n, amount=n) for n in range(WINDOWS)])
    kill_after(lane, Step.APPENDED)
    whole = lane.raw()
    longest = max(map(len, whole.values()))
    assert len(whole) == WINDOWS > longest, "there is a window for each byte"
    client, torn = lane.hdfs(), set()
    for n in range(WINDOWS):
        path = lane.window_file(n * 5)
        content = whole[path.removeprefix(f"{lane.layout.raw_root}/{lane.name}/")][:n]
        client.write(path, content, overwrite=True)
        torn.add(len(content))
    assert torn >= set(range(min(map(len, whole.values())) + 1)), "every number of bytes is there"
    end_lease(lane)
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(5.0 * n, "a"): (1, n, n) for n in range(WINDOWS)}
    assert count_certified(lane) == WINDOWS
    assert lane.detect().judged == 0


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
