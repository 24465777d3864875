"""A DAG that is scheduled on a pipeline's days, on the real Airflow: a run for each change of a day, and no other."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import land_twice
from tests.integration.test_airflow import list_states, run_dag

from onceover_local.airflow_rest import AirflowRest, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]
DAY = {"from": "2026-03-01T00:00Z", "to": "2026-03-02T00:00Z"}
EXAMPLE = "example_downstream"


def list_downstream(airflow: AirflowRest, pipeline: str) -> list[tuple[dict[str, Any], list[Any]]]:
    """Return the example's runs that heard of the pipeline, oldest first, each with these events."""
    found = []
    for run in airflow.runs(EXAMPLE):
        path = f"/api/v2/dags/{EXAMPLE}/dagRuns/{run['dag_run_id']}/upstreamAssetEvents"
        events = [e for e in airflow._call("GET", path)["asset_events"] if e["name"] == f"aggregates.{pipeline}"]
        found += [(run, events)] if events else []
    return found


def wait_for_downstream(airflow: AirflowRest, pipeline: str, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Wait until the example ran so often for the pipeline; return its last run, and what its only event names."""

    def has_run() -> bool:
        ended = [run for run, _ in list_downstream(airflow, pipeline) if run["state"] == "success"]
        return len(ended) >= number

    wait_for(has_run, 120, f"run {number} of the example")
    runs = list_downstream(airflow, pipeline)
    assert len(runs) == number
    run, (of_event,) = runs[-1]
    assert run["partition_key"] == of_event["partition_key"] == "2026-03-01"
    (published,) = of_event["extra"]["published"]
    return run, published


def seconds_after(airflow: AirflowRest, repair: str, task: str, downstream: dict[str, Any]) -> float:
    """Return how long after the task's end the downstream run began."""
    (end,) = (t["end_date"] for t in airflow.tasks("repair_on_call", repair) if t["task_id"] == task)
    return (datetime.fromisoformat(downstream["start_date"]) - datetime.fromisoformat(end)).total_seconds()


def read_windows(lane: Lane) -> list[tuple[int, int]]:
    """Return each window's revision and certificate."""
    query = 'SELECT revision, certificate_id FROM onceover."window" WHERE pipeline = %s ORDER BY window_start'
    return [(row["revision"], row["certificate_id"]) for row in lane.query(query, [lane.name])]


def list_named(published: dict[str, Any]) -> list[tuple[int, int]]:
    return [(window["revision"], window["certificate"]) for window in published["windows"]]


def test_each_change_of_a_day_is_one_downstream_run(lanes: Lanes, airflow: AirflowRest) -> None:
    lane = lanes()
    lane.land([event(minute) for minute in range(0, 60, 5)])
    lane.detect()  # first certificates, of which no DAG hears
    details = f"/api/v2/dags/{EXAMPLE}/details"
    wait_for(lambda: lane.name in str(airflow._call("GET", details)["asset_expression"]), 120, "the asset's schedule")
    airflow.wait_for_choice("repair_on_call", "pipeline", lane.name)
    airflow.pause(EXAMPLE, False)
    ask = {"pipeline": lane.name, **DAY}

    # A dry run changes nothing, and no DAG hears of it. The repair of one window is one run, with all about it.
    land_twice(lane, [event(1)])
    run_dag(airflow, "repair_on_call", {**ask, "dry_run": True})
    repair = run_dag(airflow, "repair_on_call", {**ask, "reason": "doubled"})
    run, published = wait_for_downstream(airflow, lane.name, 1)
    assert (published["by"], published["reason"], published["run_id"]) == ("repair", "doubled", repair)
    assert list_named(published) == read_windows(lane)[:1]
    assert published["windows"][0]["start"] == "2026-03-01T12:00Z"
    assert seconds_after(airflow, repair, "windows.confirm", run) < 60

    # All windows of the day have other rows: one run.
    land_twice(lane, [event(minute + 2) for minute in range(0, 60, 5)])
    repair = run_dag(airflow, "repair_on_call", {**ask, "reason": "all doubled"})
    run, published = wait_for_downstream(airflow, lane.name, 2)
    assert list_named(published) == read_windows(lane)
    assert len(published["windows"]) == 12
    assert seconds_after(airflow, repair, "windows.confirm", run) < 60

    # Late records are certified without Spark: one run, and the certificate alone is another.
    before = read_windows(lane)
    lane.land([event(3)])
    repair = run_dag(airflow, "repair_on_call", {**ask, "reason": "late"})
    assert list_states(airflow, "repair_on_call", repair)["windows.repair"] == "skipped"
    run, published = wait_for_downstream(airflow, lane.name, 3)
    assert published["by"] == "late records"
    assert list_named(published) == read_windows(lane)[:1]
    assert list_named(published)[0][0] == before[0][0]
    assert list_named(published) != before[:1]
    assert seconds_after(airflow, repair, "windows.detect", run) < 60

    # What was marked is not announced again.
    run_dag(airflow, "announce_published", {})
    assert len(list_downstream(airflow, lane.name)) == 3
    airflow.pause(EXAMPLE, True)
