"""Real crashes of a real ingest process: it holds still after a step of the batch protocol, then is killed whole."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from tests.faults.conftest import Jobs, hold
from tests.faults.ends import end_lease, read_everything, read_group_offset
from tests.integration.events import event
from tests.integration.extras import repair
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified

from onceover.fault_points import Step
from onceover.model.finding_kinds import Kind
from onceover_local.stack.process import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.faults]
EAGER = "[repair]\neager = true"
# The killed batch's trace in the ledger: its state, whether it landed, whether its offsets were committed.
LEFT_BEHIND = {
    Step.BEGUN: ("begun", 0, False),
    Step.APPENDED: ("begun", 0, False),
    Step.INCREMENTED: ("begun", 0, False),
    Step.LANDED: ("landed", 10, False),
    Step.OFFSETS_COMMITTED: ("landed", 10, True),
    Step.COMMITTED: ("landed", 10, True),
}


def wait_until_closed(lane: Lane) -> None:
    closed = "SELECT FROM onceover.pipeline WHERE name = %s AND every_window_closed"
    wait_for(lambda: lane.query(closed, [lane.name]) != [], 120, "every window to be closed")


def read_newest_batch(lane: Lane) -> tuple[str, int]:
    (row,) = lane.query(
        "SELECT b.state, (SELECT coalesce(sum(l.records), 0)::int FROM onceover.landing l "
        "WHERE l.batch_id = b.batch_id) AS records FROM onceover.batch b WHERE b.pipeline = %s "
        "ORDER BY b.batch_id DESC LIMIT 1",
        [lane.name],
    )
    return row["state"], row["records"]


@pytest.mark.parametrize(
    "steps",
    [pytest.param(tuple(Step), id="warm"), pytest.param((Step.APPENDED,), id="with its JVM", marks=pytest.mark.rare)],
)
def test_ingest_killed_at_any_step_loses_and_miscounts_nothing(
    lanes: Lanes, jobs: Jobs, steps: tuple[Step, ...]
) -> None:
    lane = lanes(idle_after="1s")
    warm = jobs("ingest.py", "--pipeline", lane.name)
    # A single one is killed with its JVM and all that it has started; several run on a Spark that is warm already.
    process = warm if len(steps) > 1 else jobs("ingest.py", "--pipeline", lane.name, cold=True)
    sent = 0
    for step in steps:
        lane.produce([event(n, amount=sent + n) for n in range(10)])
        sent += 10
        hold(process, step)
        state, records, is_committed = LEFT_BEHIND[step]
        # Records that the killed driver had not read are in this batch too, so it may hold more than 10.
        found = read_newest_batch(lane)
        assert found[0] == state, f"after {step}"
        assert (found[1] > 0) == (records > 0), f"after {step}"
        process.kill()
        assert not psutil.pid_exists(process.pid)
        (ends,) = lane.query(
            "SELECT max(end_offset) AS e FROM onceover.batch_range r JOIN onceover.batch b "
            "USING (batch_id) WHERE b.pipeline = %s",
            [lane.name],
        )
        assert (read_group_offset(lane) == ends["e"]) == is_committed, f"after {step}"
        if step is not steps[-1]:  # the last one's successor waits for its lease
            end_lease(lane)
    warm.start()
    wait_until_closed(lane)
    assert warm.stop() == 0, "SIGTERM ends it cleanly"

    assert set(lane.ids()) == lane.log().keys()
    assert {name for name, _ in lane.lines()} == {"2026-03-01/1200.log", "2026-03-01/1205.log"}
    detection = lane.detect()
    kinds = {f.kind for failed in detection.failed for f in failed.findings}
    wrong = {Kind.DUPLICATED, Kind.UNACCOUNTED_BYTES, Kind.AGGREGATE_MISMATCH}
    assert wrong <= kinds if len(steps) > 1 else kinds == {Kind.UNACCOUNTED_BYTES}
    assert len(lane.repair(detection.request_id).confirmed) == 2
    right = {}
    for window in (0, 5):
        amounts = [batch * 10 + n for batch in range(len(steps)) for n in range(window, window + 5)]
        right[(float(window), "a")] = (len(amounts), sum(amounts), max(amounts))
    assert lane.aggregates() == right
    assert lane.detect().judged == 0


def test_sigterm_lets_the_batch_under_way_finish(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes(idle_after="1s")
    lane.produce([event(n) for n in range(10)])
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.APPENDED)
    os.kill(ingest.pid, signal.SIGTERM)
    ingest.resume()
    assert ingest.wait(60) == 0
    assert (*read_newest_batch(lane), read_group_offset(lane)) == ("landed", 10, 10)
    assert lane.aggregates() == {(0.0, "a"): (5, 5, 1), (5.0, "a"): (5, 5, 1)}
    assert lane.detect().failed == ()


@pytest.mark.rare
def test_ingest_killed_before_its_ledger_offset_lands_nothing(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes(idle_after="1s", offset_store="postgres")
    lane.produce([event(0)])
    lane.turn()
    lane.produce([event(n) for n in range(1, 10)])
    ingest = jobs("ingest.py", "--pipeline", lane.name)
    with lane.ledger() as holding, lane.ledger() as ledger:
        with holding.transaction():
            holding.execute("LOCK TABLE onceover.stored_offset IN SHARE MODE")  # it may be read, and not written
            ingest.start()
            waits = (
                "SELECT count(*) AS n FROM pg_locks WHERE relation = 'onceover.stored_offset'::regclass AND NOT granted"
            )
            wait_for(lambda: (ledger.execute(waits).fetchone() or {"n": 0})["n"] == 1, 120, "the save to wait")
            ingest.kill()
        wait_for(lambda: read_newest_batch(lane) == ("begun", 0), 30, "the transaction to be gone")
        stored = ledger.execute("SELECT next_offset FROM onceover.stored_offset WHERE pipeline = %s", [lane.name])
        assert [row["next_offset"] for row in stored] == [1]
    ingest.start()
    wait_until_closed(lane)
    assert ingest.stop() == 0
    lane.repair_detected()
    assert lane.aggregates() == {(0.0, "a"): (5, 5, 1), (5.0, "a"): (5, 5, 1)}


@pytest.mark.rare
@pytest.mark.parametrize(
    ("step", "sink"),
    [
        (Step.APPENDED, "append"),
        (Step.INCREMENTED, "transactional"),
        *(pytest.param(s, "append", marks=pytest.mark.largest) for s in Step if s is not Step.APPENDED),
    ],
)
def test_paused_driver_that_was_replaced_changes_nothing(lanes: Lanes, jobs: Jobs, step: Step, sink: str) -> None:
    lane = lanes(idle_after="1s", more=f'sink = "{sink}"')
    lane.produce([event(n) for n in range(10)])
    paused, other = jobs("ingest.py", "--pipeline", lane.name), jobs("ingest.py", "--pipeline", lane.name)
    hold(paused, step)
    other.start()
    wait_until_closed(lane)
    assert other.stop() == 0
    before = read_everything(lane)
    paused.resume()
    assert paused.wait(60) != 0
    said = "taken over" if sink == "append" else "idle-in-transaction timeout"
    assert said in paused.read_log()
    assert read_everything(lane) == before
    repair(lane)
    assert count_certified(lane) == 2
    assert lane.aggregates() == {(0.0, "a"): (5, 5, 1), (5.0, "a"): (5, 5, 1)}


@pytest.mark.rare
def test_second_driver_is_refused_while_the_first_lives(
    lanes: Lanes, jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = lanes(idle_after="1s")
    lane.produce([event(0)])
    first = jobs("ingest.py", "--pipeline", lane.name)
    second = jobs("ingest.py", "--pipeline", lane.name, cold=True)
    first.start()
    wait_until_closed(lane)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # without Java: it is refused before Spark starts
    second.start()
    assert second.wait(120) == 75
    assert "has a driver already" in second.read_last_line()
    assert first.stop() == 0


@pytest.mark.rare
def test_eager_ingest_repairs_what_a_crash_miscounted(lanes: Lanes, jobs: Jobs) -> None:
    lane = lanes(idle_after="1s", more=EAGER)
    lane.produce([event(n, amount=1) for n in range(10)])
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.INCREMENTED)
    ingest.kill()
    end_lease(lane)
    ingest.start()
    wait_for(lambda: count_certified(lane) == 2, 120, "both windows to be certified")
    assert ingest.stop() == 0
    assert lane.aggregates() == {(0.0, "a"): (5, 5, 1), (5.0, "a"): (5, 5, 1)}
    assert 'requested by ingest ("eager repair"): confirmed' in lane.explain_text(0)
    assert lane.detect().judged == 0
