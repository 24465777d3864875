"""Ranges that a person requests through the real Airflow: green means certified, and a backfill needs no tricks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.conftest import pause_when_all_have_ended
from tests.integration.compaction import list_states
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import land_twice

from onceover.config.airflow import POOL
from onceover.config.endpoints import address
from onceover.model.window import to_ms
from onceover_local.airflow_rest import AirflowRest, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]
YESTERDAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)


def land_yesterday_twice(lane: Lane, hour: int) -> None:
    """Land a record of yesterday twice, so that its window is wrong."""
    land_twice(lane, [b'{"at": %d, "kind": "a", "amount": 1}' % to_ms(YESTERDAY + timedelta(hours=hour))])


def backfill_yesterday(airflow: AirflowRest, lane: Lane, reprocess: str = "none", hours: int = 0) -> None:
    """Start the backfill that Airflow's form starts in a time zone so many hours behind UTC; `none` is its default."""
    midnight = YESTERDAY + timedelta(hours=hours)
    day = airflow.backfill("repair_history", midnight, midnight, {"pipeline": lane.name}, reprocess=reprocess)
    airflow.wait_for_backfill(day, 300)


def list_requesters(lane: Lane) -> list[str]:
    query = "SELECT who FROM onceover.repair_request WHERE pipeline = %s ORDER BY request_id"
    return [row["who"] for row in lane.query(query, [lane.name])]


def test_backfill_by_the_forms_defaults_repairs_yesterday(lanes: Lanes, airflow: AirflowRest) -> None:
    lane = lanes(minutes=60)
    land_yesterday_twice(lane, 1)
    airflow.wait_for_choice("repair_history", "pipeline", lane.name, 300)
    assert airflow.runs("repair_history", "scheduled") == [], "an idle run would be an existing run of its day"

    backfill_yesterday(airflow, lane)
    assert (list_states(lane), list_requesters(lane)) == (["certified"], ["admin (backfill)"])

    # The day has a run now, of another user. Choosing to reprocess completed runs clears it, and names who chose so.
    with psycopg.connect(
        address("postgres").replace("//onceover@", "//airflow@").replace("/onceover?", "/airflow?")
    ) as airflows_own:
        airflows_own.execute("UPDATE dag_run SET triggering_user_name = 'ada' WHERE dag_id = 'repair_history'")
    land_yesterday_twice(lane, 1)
    backfill_yesterday(airflow, lane)
    assert list_states(lane) == ["closed"], "the form's default skips the day now"
    # From Los Angeles, yesterday is a part of today, too: the run is red for that day alone, and has done all else.
    backfill_yesterday(airflow, lane, "completed", hours=8)
    assert (list_states(lane), list_requesters(lane)) == (["certified"], ["admin (backfill)"] * 2)
    runs = airflow.runs("repair_history", "backfill")
    (run,) = (each for each in runs if each["data_interval_start"].startswith(f"{YESTERDAY:%Y-%m-%d}"))
    tasks = {task["task_id"]: task for task in airflow.tasks("repair_history", run["dag_run_id"])}
    assert {name for name, task in tasks.items() if task["state"] == "failed"} == {"days"}
    said = airflow.log("repair_history", run["dag_run_id"], "days", try_number=tasks["days"]["try_number"])
    assert f"asked for days that have no run: {YESTERDAY + timedelta(days=1):%Y-%m-%d}. They were not over" in said


def test_run_on_call_whose_window_fails_is_red_and_says_why(lanes: Lanes, airflow: AirflowRest) -> None:
    lane = lanes()
    lane.land([event(n) for n in range(3)])
    lane.detect()
    path = lane.window_file(0)
    content = lane.read(path)
    lane.overwrite(path, content[:-9])
    airflow.wait_for_choice("repair_on_call", "pipeline", lane.name, 300)

    asked = {"pipeline": lane.name, "from": "2026-03-01T12:00Z", "to": "2999-01-01T00:00Z", "reason": "it looks odd"}
    run = airflow.trigger("repair_on_call", {**asked, "force": True})
    assert airflow.wait_for_run("repair_on_call", run, 300)["state"] == "failed"
    tasks = {task["task_id"]: task["state"] for task in airflow.tasks("repair_on_call", run)}
    assert (tasks["windows.confirm"], tasks["windows.check"]) == ("success", "failed")
    said = airflow.log("repair_on_call", run, "windows.check")
    assert "of the requested range, 1 window is not right: 2026-03-01T12:00Z (failed: " in said
    assert "the range ends in the future: it is judged up to" in airflow.log("repair_on_call", run, "windows.detect")
    assert list_states(lane) == ["failed"], "a file of another length has its window judged again"


@pytest.mark.largest
def test_repair_that_waits_holds_up_no_detection(lanes: Lanes, airflow: AirflowRest) -> None:
    slow, other = lanes(), lanes()
    for lane in (slow, other):
        lane.land([event(n) for n in range(3)])
        lane.detect()
    airflow.wait_for_choice("repair_on_call", "pipeline", other.name)
    set_slots(airflow, 0)  # none is free, as while a long repair runs
    airflow.pause("repair_failed_windows", False)
    try:
        land_twice(slow, [event(1)])
        first = airflow.trigger("repair_failed_windows", {})
        wait_for(lambda: len(list_requesters(slow)) == 1, 120, "the first run to request a repair")
        land_twice(other, [event(1)])
        second = airflow.trigger("repair_failed_windows", {})
        wait_for(lambda: len(list_requesters(other)) == 1, 120, "the second run to judge the other pipeline")
        assert len(list_requesters(slow)) == 1, "nothing is requested twice"
    finally:
        set_slots(airflow, 1)
    for run in (first, second):
        assert airflow.wait_for_run("repair_failed_windows", run, 300)["state"] == "success"
    pause_when_all_have_ended(airflow, "repair_failed_windows")
    assert (list_states(slow), list_states(other)) == (["certified"], ["certified"])


def set_slots(airflow: AirflowRest, slots: int) -> None:
    airflow._call("PATCH", f"/api/v2/pools/{POOL}", {"pool": POOL, "slots": slots, "include_deferred": False})
