"""Airflow killed in the middle of a repair, as when its machine's memory runs out: scheduler, worker and task."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import psutil
import pytest
from tests.integration.compaction import list_states
from tests.integration.lane import Lane
from tests.integration.test_requested_ranges import count_twice

from onceover_local.airflow_rest import AirflowRest, wait_for
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]
SCHEDULER = "airflow-scheduler"


def test_airflow_killed_in_mid_repair_publishes_once(
    lanes: Callable[..., Lane], stack: Stack, airflow: AirflowRest
) -> None:
    lane = lanes()
    count_twice(lane)
    assert lane.aggregates() == {(0.0, "a"): (2, 2, 1)}
    wait_for(lambda: lane.name in airflow.choices("repair_on_call", "pipeline"), 300, "the form to list the pipeline")
    asked = {"pipeline": lane.name, "from": "2026-03-01T12:00Z", "to": "2026-03-01T12:05Z", "reason": "it is doubled"}
    run = airflow.trigger("repair_on_call", asked)
    wait_for(lambda: bool(list_spark(lane)), 120, "the task to start Spark", every_s=0.05)

    alone = next(each for each in list_spark(lane) if each.ppid() not in {other.pid for other in list_spark(lane)})
    scheduler = psutil.Process(stack.find_pid(SCHEDULER))
    task_and_worker = list(takewhile(lambda each: each != scheduler, alone.parents()))
    assert (len(task_and_worker), task_and_worker[-1].ppid()) == (2, scheduler.pid)
    assert read_task(airflow, run) == ("running", 1)
    assert read_revisions(lane) == [0]
    stack.kill_part(SCHEDULER)
    for each in task_and_worker:
        each.kill()
    wait_for(lambda: not any(map(lives, task_and_worker)), 30, "the task and its worker to be gone")
    assert lives(alone), "the application goes on, although no process watches it"
    wait_for(lambda: read_revisions(lane) == [1], 120, "it to publish")
    wait_for(lambda: not airflow.healthy(), 60, "Airflow to miss its scheduler")
    assert read_task(airflow, run) == ("running", 1), "for all that Airflow knows"

    assert stack.up({"airflow"}) == [SCHEDULER]
    airflow.wait_for_run("repair_on_call", run, 300)
    assert airflow.run("repair_on_call", run)["state"] == "success"
    assert read_task(airflow, run) == ("success", 2), "Airflow ran the task again by itself"
    assert (list_states(lane), read_revisions(lane)) == (["certified"], [1]), "and nothing was published again"
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
    with lane.ledger() as ledger:
        rows = ledger.execute(f"SELECT revision FROM aggregates.{lane.name}").fetchall()  # a name of the test's own
    return [row["revision"] for row in rows]
