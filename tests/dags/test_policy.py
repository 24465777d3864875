"""The policy that every DAG of this project keeps."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from onceover.config.airflow import POOL
from onceover_airflow.operators.repair import RepairOperator
from onceover_airflow.retries import RETRY_POLICY

pytestmark = pytest.mark.airflow

DAGS = Path(__file__).parents[2] / "dags"
REPAIRS = ["repair_failed_windows", "repair_history", "repair_on_call"]
NAMES = ["audit_against_log", "expire_raw", *REPAIRS, "sweep_certified", "watch_deadlines"]


def test_all_dags_load(dag_bag: DagBag) -> None:
    assert dag_bag.import_errors == {}
    assert sorted(dag_bag.dags) == NAMES


@pytest.fixture(params=NAMES)
def dag(request: pytest.FixtureRequest, dag_bag: DagBag) -> DAG:
    found: DAG = dag_bag.dags[request.param]
    return found


def test_dag_has_its_files_name_and_a_runbook(dag: DAG) -> None:
    assert Path(dag.fileloc).stem == dag.dag_id
    assert dag.doc_md is not None
    assert "When a task is red" in dag.doc_md
    for task_id in dag.task_ids:
        assert f"`{task_id}`" in dag.doc_md


def test_dag_has_tags_and_does_not_catch_up(dag: DAG) -> None:
    assert "onceover" in dag.tags
    assert not dag.catchup
    assert dag.is_paused_upon_creation is False


def test_task_has_owner_deadline_and_retries_of_transient_errors(dag: DAG) -> None:
    for task in dag.tasks:
        assert task.owner == "onceover", task.task_id
        assert task.retries == 2, task.task_id
        assert task.execution_timeout is not None, task.task_id
        assert task.retry_policy == RETRY_POLICY, task.task_id


@pytest.mark.parametrize("dag_id", REPAIRS)
def test_spark_task_runs_alone_and_reruns_when_cleared(dag_bag: DagBag, dag_id: str) -> None:
    repair = dag_bag.dags[dag_id].get_task("windows.repair")

    assert repair.pool == POOL
    assert isinstance(repair, RepairOperator)
    assert repair.durable is False


def test_dag_survives_being_stored(dag: DAG) -> None:
    stored = json.loads(json.dumps(DagSerialization.to_dict(dag)))

    assert DagSerialization.from_dict(stored).task_ids == dag.task_ids


def test_dag_is_only_wiring(dag: DAG) -> None:
    code = Path(dag.fileloc).read_text().split('"""', 2)[2]

    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    assert not re.search(r"\b(import|from) (onceover|pyspark|hdfs|psycopg)\b(?!_)", code)


def test_history_interval_is_a_utc_day(dag_bag: DagBag) -> None:
    timetable = DagSerialization.from_dict(DagSerialization.to_dict(dag_bag.dags["repair_history"])).timetable

    assert timetable.serialize() | {"expression": "0 0 * * *", "timezone": "UTC"} == timetable.serialize()
    assert type(timetable).__name__ == "CronDataIntervalTimetable"


def test_loading_the_dags_opens_nothing(home: Path) -> None:
    probe = (
        "import sys; from airflow.dag_processing.dagbag import DagBag; bag = DagBag(sys.argv[1]);"
        "print('loaded', bag.import_errors, [m for m in ('pyspark', 'hdfs', 'psycopg', 'confluent_kafka')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(DAGS)], env=dict(os.environ), capture_output=True, text=True, timeout=120
    )

    assert done.stdout.splitlines()[-1] == "loaded {} []", done.stdout + done.stderr
