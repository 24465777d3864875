"""Batches that Kafka no longer holds, joined in the ledger: their windows are proved and repaired as before."""

from __future__ import annotations

import pytest
from tests.integration.events import NOON, event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, expire, minutes
from tests.integration.program import as_json, run

pytestmark = pytest.mark.stack


def roll_up(lanes: Lanes) -> Lane:
    """Return a lane with two certified windows of four batches, which Kafka no longer holds and which are joined, and
    a later batch in a third window."""
    lane = lanes(most=2)
    lane.land([event(1), event(6), event(2), event(7), event(3), event(8), event(4), b"rubbish"])
    lane.detect()
    lane.land([event(11)])
    assert count_certified(lane) == 2
    assert "no batch can be joined" in run("ledger", "roll-up", lane.name).stdout, "Kafka holds their offsets"
    expire(lane, 8)
    planned = as_json("ledger", "roll-up", lane.name, "--dry-run")
    assert (planned["batches"], planned["rollups"]) == (4, 1)
    done = as_json("ledger", "roll-up", lane.name)
    assert (done["batches"], done["rollups"], done["alone"], done["left"]) == (4, 1, 0, 0)
    return lane


def test_joined_batches_count_as_before(lanes: Lanes) -> None:
    lane = roll_up(lanes)

    assert as_json("ledger", "roll-up", lane.name)["batches"] == 0, "once is enough"
    assert "4 batches rolled up" in lane.explain_text(0)
    assert len(lane.explain(0)["ledger"]["landings"]) == 1
    assert count_certified(lane) == 2
    assert lane.sweep().differing == ()
    right = lane.aggregates()
    lane.land([event(4.5)])
    detection = lane.detect()
    assert (detection.certified, detection.failed) == (2, ()), "the window of the late record, and the third one"
    assert lane.aggregates() == {**right, (0.0, "a"): (5, 5, 1)}


@pytest.mark.largest
def test_raw_of_joined_batches_is_proved_and_rebuilt(lanes: Lanes) -> None:
    lane = roll_up(lanes)
    right = lane.aggregates()
    lane.detect()

    assert lane.verify(0)["equal"]
    assert lane.audit()["equal"]
    lane.query(f"UPDATE aggregates.{lane.name} SET events = 99 WHERE window_start = %s", [NOON])
    lane.sweep()
    detection = lane.detect()
    assert [str(failed.window) for failed in detection.failed] == ["2026-03-01T12:00Z"]
    assert len(lane.repair(detection.request_id).confirmed) == 1
    assert lane.aggregates() == right
    forced = lane.detect(minutes(0, 15), force=True)
    confirmed = lane.repair(forced.request_id).confirmed
    assert confirmed == ("2026-03-01T12:00Z", "2026-03-01T12:05Z", "2026-03-01T12:10Z")
    assert lane.aggregates() == right
