"""A record for which an expression never ends: it goes to quarantine, and all others count, without a person."""

from __future__ import annotations

import pytest
from tests.faults.conftest import Jobs
from tests.integration.lane import EVENTS, Lane, Lanes, event
from tests.integration.poison import read_reasons

from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare, pytest.mark.largest]

BACKTRACKING = EVENTS.replace(
    '"value.kind"', r"""'''concat(value.kind, regexp_extract(value.kind, r'^(.*?,){{11}}P', 0))'''"""
)
ENDLESS = event(1, "1," * 100, 100)


def test_record_that_never_ends_is_quarantined_alone(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes(BACKTRACKING, partitions=2)
    lane.produce([event(1, "a"), ENDLESS, event(2, "b"), ENDLESS, event(3, "a", 2)])
    lane.produce([event(4, "a")], kafka_partition=1)
    ingest = jobs("ingest.py", "--pipeline", lane.name, cold=True)
    ingest.start()
    wait_for(lambda: has_run(lane) and (0.0, "a") in lane.aggregates(), 600, "the other Kafka partition to go on")
    assert read_reasons(lane) == {}, "the search goes on"
    wait_for(lambda: len(read_reasons(lane)) == 2, 600, "the search to end")
    wait_for(lambda: (0.0, "b") in lane.aggregates(), 60, "the batch to land")
    assert ingest.stop() == 0
    assert read_reasons(lane) == {(0, 1): "SQL too slow: key kind", (0, 3): "SQL too slow: key kind"}
    assert lane.aggregates() == {(0.0, "a"): (3, 4, 2), (0.0, "b"): (1, 1, 1)}
    assert "ingest starts again" in ingest.read_log()


def has_run(lane: Lane) -> bool:
    return lane.query("SELECT WHERE to_regclass(%s) IS NOT NULL", [f"aggregates.{lane.name}"]) != []
