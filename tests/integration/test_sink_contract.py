"""What every sink holds to, a third one among them that only this file registers: it takes a class, and its name in two
tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from tests.integration import test_main_path as main_path
from tests.integration.events import event
from tests.integration.kills import find_kinds, ingest_under_kills, kill_after
from tests.integration.lane import Lanes

from onceover.fault_points import FaultPoint, Step
from onceover.ingest import sinks
from onceover.ingest.batch_steps import StagedBatch
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.increments import increment, insert_windows
from onceover.model import pipeline
from onceover.model.finding_kinds import Kind

pytestmark = [pytest.mark.stack, pytest.mark.rare]
NAME = "land_first"


@dataclass(frozen=True, slots=True)
class LandFirstSink:
    """Landings before rows: a kill in between counts a batch not at all, where `append` counts it twice."""

    connection: Connection
    epoch: Epoch

    def write(self, batch: StagedBatch, land: Callable[[], None], fault_point: FaultPoint) -> None:
        increments = batch.result.increments
        with self.connection.transaction():
            ends = {each.window_start: each.window_end for each in increments}
            insert_windows(self.connection, self.epoch.pipeline, batch.table, ends)
            land()
        fault_point.stop_after(Step.INCREMENTED)  # between the two
        increment(self.connection, self.epoch, batch.table, batch.batch_id, increments, batch.staged)


@pytest.fixture
def third(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> Lanes:
    monkeypatch.setitem(pipeline.SINKS, NAME, False)
    monkeypatch.setitem(sinks.SINKS, NAME, LandFirstSink)
    return partial(lanes, more=f'sink = "{NAME}"')


@pytest.mark.parametrize(
    "run",
    [
        main_path.test_clean_run_is_certified_from_the_ledger_without_repair,
        main_path.test_duplicate_landing_is_found_repaired_and_proved,
        main_path.test_late_record_reopens_its_window_certified_without_repair,
    ],
    ids=["clean", "duplicate", "late"],
)
def test_main_path_passes_on_a_sink_registered_here(third: Lanes, run: Callable[[Lanes], None]) -> None:
    run(third)


@pytest.mark.parametrize("sink", [*pipeline.SINKS, NAME])
def test_sink_under_kills_loses_nothing_and_is_repaired(third: Lanes, sink: str) -> None:
    lane = third(more=f'sink = "{sink}"')
    sent = ingest_under_kills(lane) // 2
    assert set(lane.ids()) == lane.log().keys()
    assert len(lane.repair_detected().confirmed) == 2
    assert lane.aggregates() == {(0.0, "a"): (sent, sent, 1), (5.0, "a"): (sent, sent, 1)}
    used = lane.query("SELECT DISTINCT sink FROM onceover.batch WHERE pipeline = %s", [lane.name])
    assert [row["sink"] for row in used] == [sink]


def test_third_sink_killed_between_landing_and_rows_is_found(third: Lanes) -> None:
    lane = third()
    lane.produce([event(1)])
    kill_after(lane, Step.INCREMENTED)
    assert lane.aggregates() == {}
    lane.ingest()
    assert Kind.AGGREGATE_MISMATCH in find_kinds(lane)
