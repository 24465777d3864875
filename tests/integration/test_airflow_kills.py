"""Airflow killed in the middle of a repair, as when its machine's memory runs out: scheduler, worker and task."""

from __future__ import annotations

from contextlib import suppress
from itertools import takewhile

import psutil
import pytest
from tests.integration.compaction import list_states
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import land_twice

from onceover_local.airflow_rest import AirflowRest, wait_for
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]
SCHEDULER = "airflow-scheduler"


def test_airflow_killed_in_mid_repair_publishes_once(lanes: Lanes, stack: Stack, airflow: AirflowRest) -> None:
    lane = lanes()
    run = kill_in_mid_repair(lane, stack, airflow)
    assert any(map(lives, list_spark(lane))), "the application goes on, although no process watches it"
    wait_for(lambda: read_revisions(lane) == [1], 120, "it to publish")
    wait_for(lambda: not airflow.healthy(), 60, "Airflow to miss its scheduler")
    assert read_task(airflow, run) == ("running", 1), "for all that Airflow knows"
    assert_ends_right(lane, run, stack, airflow)


@pytest.mark.largest
def test_repair_killed_with_airflow_is_done_by_its_retry(lanes: Lanes, stack: Stack, airflow: AirflowRest) -> None:
    lane = lanes()
    run = kill_in_mid_repair(lane, stack, airflow)
    wait_for(lambda: read_repair(lane) == "claimed", 120, "the application to claim its window", every_s=0.02)
    for each in list_spark(lane):
        with suppress(psutil.NoSuchProcess):  # a child may end with its parent
            each.kill()
    wait_for(lambda: not any(map(lives, list_spark(lane))), 30, "the application to be gone")
    assert (read_repair(lane), read_revisions(lane)) == ("claimed", [0]), "it was killed before it published"
    wait_for(lambda: not airflow.healthy(), 60, "Airflow to miss its scheduler")
    assert_ends_right(lane, run, stack, airflow)


def kill_in_mid_repair(lane: Lane, stack: Stack, airflow: AirflowRest) -> str:
    """Request the repair of a doubled window, kill scheduler, worker and task once Spark starts; return the run."""
    land_twice(lane, [event(1)])
    assert lane.aggregates() == {(0.0, "a"): (2, 2, 1)}
    airflow.wait_for_choice("repair_on_call", "pipeline", lane.name, 300)
    asked = {"pipeline": lane.name, "from": "2026-03-01T12:00Z", "to": "2026-03-01T12:05Z", "reason": "it is doubled"}
    run = airflow.trigger("repair_on_call", asked)
    wait_for(lambda: bool(list_spark(lane)), 120, "the task to start Spark", every_s=0.05)

    first = next(each for each in list_spark(lane) if each.ppid() not in {other.pid for other in list_spark(lane)})
    scheduler = psutil.Process(stack.find_pid(SCHEDULER))
    task_and_worker = list(takewhile(lambda each: each != scheduler, first.parents()))
    assert (len(task_and_worker), task_and_worker[-1].ppid()) == (2, scheduler.pid)
    assert read_task(airflow, run) == ("running", 1)
    assert read_revisions(lane) == [0]
    stack.kill_part(SCHEDULER)
    for each in task_and_worker:
        each.kill()
    wait_for(lambda: not any(map(lives, task_and_worker)), 30, "the task and its worker to be gone")
    return run


def assert_ends_right(lane: Lane, run: str, stack: Stack, airflow: AirflowRest) -> None:
    """Start the scheduler again, and see that the run ends by itself, with its window published once."""
    assert stack.up({"airflow"}) == [SCHEDULER]
    wait_for(lambda: read_task(airflow, run)[0] in ("success", "failed"), 300, "the task to end")
    assert read_task(airflow, run) == ("success", 2), "Airflow ran the task again by itself"
    assert read_repair(lane) != "claimed", "the second try did what the first had left"
    assert airflow.wait_for_run("repair_on_call", run, 300)["state"] == "success"
    assert (list_states(lane), read_revisions(lane)) == (["certified"], [1]), "it was published once"
    assert read_repair(lane) == "confirmed"
    assert lane.aggregates() == {(0.0, "a"): (1, 1, 1)}


def list_spark(lane: Lane) -> list[psutil.Process]:
    """Return the processes of the lane's repair: spark-submit, its JVM and the driver, as far as they run yet."""
    processes = psutil.process_iter(["cmdline"])
    lines = ((each, " ".join(each.info["cmdline"] or ())) for each in processes)
    return [each for each, line in lines if "repair.py" in line and lane.name in line]


def lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def read_task(airflow: AirflowRest, run: str) -> tuple[str, int]:
    """Return the repair task's state, and the number of its try."""
    (task,) = (each for each in airflow.tasks("repair_on_call", run) if each["task_id"] == "windows.repair")
    return task["state"], task["try_number"]


def read_revisions(lane: Lane) -> list[int]:
    """Return how often each row of the lane was published by a repair."""
    rows = lane.query(f"SELECT revision FROM aggregates.{lane.name}")  # a name of the test's own
    return [row["revision"] for row in rows]


def read_repair(lane: Lane) -> str:
    """Return the state of the one repair of the lane that was requested."""
    rows = lane.query("SELECT state FROM onceover.repair WHERE pipeline = %s", [lane.name])
    (state,) = (str(row["state"]) for row in rows)
    return state
