"""A record that no reader gets, under the offset of one that landed before Kafka's log was cut."""

from __future__ import annotations

import pytest
from tests.integration.cut_logs import damage_batch, land_and_cut, produce_compressed
from tests.integration.extras import repair
from tests.integration.lane import Lanes, event
from tests.integration.planted_failures import count_certified
from tests.integration.program import run

from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]


@pytest.mark.largest
def test_record_that_nothing_reads_stops_no_cut_log(lanes: Lanes, stack: Stack) -> None:
    lane = lanes()
    land_and_cut(lane, stack)
    lane.produce([event(11, amount=81)])
    produce_compressed(lane.topic, 1)
    lane.produce([event(n, amount=70 + n) for n in (12, 13)])
    damage_batch(stack, lane.topic)
    lane.turn(4)
    where = f"{lane.source()}:4-5"
    accept = ["accept-loss", lane.name, where, "--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:15Z"]
    done = run(*accept, "--unreadable", "--reason", "INC-7: damaged on disk")
    assert done.returncode == 0, done.stderr
    lane.ingest()
    repair(lane)
    assert lane.aggregates() == {(0.0, "a"): (4, 6, 3), (5.0, "a"): (2, 11, 6), (10.0, "a"): (3, 246, 83)}, (
        "under offset 4 the record counts that landed"
    )
    assert count_certified(lane) == 3
    assert "that Kafka holds and no reader gets" in lane.explain_text(0)
    assert lane.audit()["equal"]
    assert lane.detect().judged == 0
