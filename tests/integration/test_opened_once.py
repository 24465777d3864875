"""Each process reads the pipeline's TOML once and connects to the ledger once: the command line, Airflow's tasks, and
the Spark jobs that they start. The heartbeat and the renewal of claims have connections of their own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.airflow_home import DAGS, name_airflow_home
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.open_counts import OpenCounts, count_opens
from tests.integration.planted_failures import land_twice
from tests.integration.program import as_json
from tests.programs import run_python

from onceover.config.endpoints import address, pipelines_folder
from onceover_demo.warm import QUICKLY

pytestmark = pytest.mark.stack
ONCE = (1, 1)
TIMES = {"from": "2026-03-01T12:00Z", "to": "2026-03-01T12:05Z"}
TASK = """
import json
import sys
from importlib import import_module
from types import SimpleNamespace

from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.execution_time.context import OutletEventAccessors

dags, dag, operator, fields, params = sys.argv[1:]
assert dag in DagBag(f"{dags}/{dag}.py").dags
module, _, name = operator.partition(":")
made = getattr(import_module(f"onceover_airflow.operators.{module}"), name)(task_id="task", **json.loads(fields))
run = dict(dag_id=dag, run_id="manual", run_type="manual", triggering_user_name="ada", data_interval_start=None)
context = {"dag_run": SimpleNamespace(**run, data_interval_end=None), "params": json.loads(params)}
context["outlet_events"] = OutletEventAccessors()
print(json.dumps(made.execute(context)))
"""


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    """A pipeline with a deadline and a retention, and a window that was landed twice."""
    made = lanes(more='[repair]\ndeadline = "1d"\n[storage]\nretention = "400d"')
    land_twice(made, [event(1)])
    return made


@pytest.fixture
def opened(lane: Lane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenCounts:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--master local[2] {QUICKLY} pyspark-shell")
    return count_opens(tmp_path / "counter", monkeypatch, address("postgres"), pipelines_folder())


def run_task(dag: str, operator: str, params: dict[str, Any], **fields: object) -> Any:
    """Run one task in a process of its own that loads the DAG; return the task's result."""
    spark = json.dumps({"conn_type": "spark", "host": "local[2]"})
    arguments = (str(DAGS), dag, operator, json.dumps(fields), json.dumps(params))
    said = run_python("-c", TASK, *arguments, environment={**os.environ, "AIRFLOW_CONN_SPARK_DEFAULT": spark})
    return json.loads(said.splitlines()[-1])


@pytest.mark.largest
def test_cli_repair_and_its_job_open_the_pipeline_once_each(lane: Lane, opened: OpenCounts) -> None:
    done = as_json("repair", lane.name, "--from", TIMES["from"], "--to", TIMES["to"], "--reason", "a test")
    assert done["windows"][0]["outcome"] == "confirmed"
    assert opened.list_by_process() == [ONCE, ONCE]


@pytest.mark.airflow
@pytest.mark.largest
def test_dag_task_and_its_job_open_the_pipeline_once_each(lane: Lane, opened: OpenCounts) -> None:
    name_airflow_home()

    def counted(dag: str, operator: str, params: dict[str, Any] | None = None, **fields: object) -> Any:
        opened.forget()
        result = run_task(dag, operator, params or {}, pipeline=lane.name, **fields)
        return result, opened.list_by_process()

    on_call = {**TIMES, "reason": "a test"}
    detection, counts = counted("repair_on_call", "repair:DetectOperator", on_call, scope="run", reason_needed=True)
    assert (len(detection["failed"]), counts) == (1, [ONCE])
    _, counts = counted("repair_on_call", "repair:RepairOperator", detection=detection)
    assert counts == [ONCE], "of the job; its task needs neither"
    confirmation, counts = counted("repair_on_call", "repair:ConfirmOperator", detection=detection)
    assert (len(confirmation["confirmed"]), counts) == (1, [ONCE])
    audit_id, counts = counted("audit_against_log", "audit:AskAuditOperator", TIMES)
    assert counts == [ONCE]
    _, counts = counted("audit_against_log", "audit:AuditOperator", audit_id=audit_id)
    assert counts == [ONCE, ONCE], "the job's, then the task's for the result"
    swept, counts = counted("sweep_certified", "sweep:SweepOperator")
    assert (swept["compared"], counts) == (1, [ONCE])
    verified, counts = counted("sweep_certified", "audit:VerifyOperator")
    assert (verified["window"], counts) == (TIMES["from"], [ONCE, ONCE]), "its job's and its own"
    expired, counts = counted("expire_raw", "retention:ExpireOperator")
    assert (expired["expired"], counts) == (0, [ONCE])
    _, counts = counted("watch_deadlines", "deadline:DeadlineOperator")
    assert counts == [ONCE]
