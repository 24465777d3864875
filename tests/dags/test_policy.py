"""The policy that every DAG of this project keeps."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, WeightRule
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.serialization.serialized_objects import DagSerialization
from tests.programs import run_python

from onceover.config.airflow import POOL
from onceover_airflow.operators.repair import RepairOperator
from onceover_airflow.retries import RETRY_POLICY
from onceover_airflow.task_group import CHECKS

pytestmark = pytest.mark.airflow

DAGS = Path(__file__).parents[2] / "dags"
REPAIRS = ["repair_failed_windows", "repair_history", "repair_on_call"]
DECISIONS = ["accept_loss", "restore_window", "take_windows"]
REREAD, RESTATE = "reread_window", "restate_history"
EXAMPLE = "example_downstream"
OTHERS = ["announce_published", "audit_against_log", "expire_raw", "sweep_certified", "watch_deadlines"]
NAMES = sorted([*DECISIONS, EXAMPLE, *OTHERS, *REPAIRS, REREAD, RESTATE])


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
    assert dag.is_paused_upon_creation is (dag.dag_id == EXAMPLE)


def test_task_has_owner_deadline_and_retries_of_transient_errors(dag: DAG) -> None:
    for task in dag.tasks:
        assert task.owner == "onceover", task.task_id
        assert task.retries == (CHECKS if task.task_id.endswith("check") else 2), task.task_id
        assert task.execution_timeout is not None, task.task_id
        assert task.retry_policy == RETRY_POLICY, task.task_id


@pytest.mark.parametrize("dag_id", REPAIRS)
def test_spark_task_runs_alone_and_reruns_when_cleared(dag_bag: DagBag, dag_id: str) -> None:
    repair = dag_bag.dags[dag_id].get_task("windows.repair")

    assert repair.pool == POOL
    assert isinstance(repair, RepairOperator)
    assert repair.durable is False


@pytest.mark.parametrize("dag_id", DECISIONS)
def test_decision_is_one_task_by_hand_for_a_reason(dag_bag: DagBag, dag_id: str) -> None:
    decision = dag_bag.dags[dag_id]

    assert (decision.timetable.can_be_scheduled, len(decision.tasks), decision.max_active_runs) == (False, 1, 4)
    assert {"decision", "on call"} <= decision.tags
    assert [*decision.params][:: len(decision.params) - 1] == ["pipeline", "reason"]


def test_reread_is_followed_by_a_repair_ahead_of_schedules(dag_bag: DagBag) -> None:
    dag = dag_bag.dags[REREAD]
    tasks = [dag.get_task(name) for name in ("reread", "repair", "confirm", "check")]

    assert len(dag.tasks) == len(tasks)
    assert [task.upstream_task_ids for task in tasks] == [
        set(),
        {"reread"},
        {"reread", "repair"},
        {"reread", "confirm"},
    ]
    assert {"repair", "on call"} <= dag.tags
    assert [(task.pool, getattr(task, "priority_weight", None)) for task in tasks[:2]] == [(POOL, 100)] * 2


def test_mapped_task_shows_its_pipeline(dag: DAG) -> None:
    mapped = [task for task in dag.tasks if isinstance(task, MappedOperator)]
    assert [task.task_id for task in mapped if task.map_index_template != "{{ task.pipeline }}"] == []


def test_dag_survives_being_stored(dag: DAG) -> None:
    stored = json.loads(json.dumps(DagSerialization.to_dict(dag)))

    assert DagSerialization.from_dict(stored).task_ids == dag.task_ids


def test_dag_is_only_wiring(dag: DAG) -> None:
    code = Path(dag.fileloc).read_text().split('"""', 2)[2]

    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    assert not re.search(r"\b(import|from) (onceover|pyspark|hdfs|psycopg)\b(?!_)", code)


def test_history_is_for_backfills_of_utc_days_alone(dag_bag: DagBag) -> None:
    stored = DagSerialization.from_dict(DagSerialization.to_dict(dag_bag.dags["repair_history"]))

    assert stored.timetable.periodic, "else Airflow's form offers no backfill"
    assert stored.next_dagrun_info(last_automated_run_info=None) is None, "the scheduler makes no idle run"


@pytest.mark.parametrize(
    ("zone", "first", "last", "more"),
    [
        ("UTC", "2026-02-27", "2026-03-01", (0, 0)),
        ("America/Los_Angeles", "2013-01-05", "2013-01-07", (0, 1)),
        ("Asia/Tokyo", "2013-01-05", "2013-01-07", (1, 0)),
        ("Pacific/Kiritimati", "2013-01-05", "2013-01-07", (1, 0)),  # UTC+14
        ("Pacific/Pago_Pago", "2013-01-05", "2013-01-05", (0, 1)),  # UTC-11
        ("Asia/Kathmandu", "2012-12-31", "2013-01-01", (1, 0)),  # UTC+5:45
        ("America/Los_Angeles", "2013-03-09", "2013-03-11", (0, 1)),  # daylight saving begins on the 10th
        ("America/Los_Angeles", "2013-11-02", "2013-11-04", (0, 1)),  # and ends on the 3rd
        ("Europe/London", "2013-03-30", "2013-04-01", (0, 0)),  # from 00:00Z to 23:00Z of the day before
        ("Europe/London", "2013-10-26", "2013-10-28", (1, 0)),
        ("America/Santiago", "2013-09-07", "2013-09-09", (0, 1)),  # the 8th has no midnight
    ],
)
def test_history_runs_each_day_that_the_form_showed(
    dag_bag: DagBag, zone: str, first: str, last: str, more: tuple[int, int]
) -> None:
    stored = DagSerialization.from_dict(DagSerialization.to_dict(dag_bag.dags["repair_history"]))
    asked = [datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for day in (first, last)]
    shown = [datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, last)]
    days = [shown[0] - timedelta(days=more[0]), shown[1] + timedelta(days=more[1])]

    infos = stored.iter_dagrun_infos_between(*asked)
    runs = [info.data_interval for info in infos if info.data_interval is not None]

    assert [runs[0].start, runs[-1].start, len(runs)] == [*days, (days[1] - days[0]).days + 1]
    assert all(run.end - run.start == timedelta(days=1) for run in runs)


def test_on_call_goes_ahead_of_schedules_and_they_of_backfills(dag_bag: DagBag) -> None:
    repairs = [dag_bag.dags[name].get_task("windows.repair") for name in ("repair_on_call", *REPAIRS[:2])]

    assert [getattr(task, "priority_weight", None) for task in repairs] == [100, 10, 1]
    assert {getattr(task, "weight_rule", None) for task in repairs} == {WeightRule.ABSOLUTE}


@pytest.mark.parametrize("dag_id", REPAIRS)
def test_skipping_a_repair_needs_no_slot_of_spark(dag_bag: DagBag, dag_id: str) -> None:
    needed = dag_bag.dags[dag_id].get_task("windows.needed")

    assert needed.pool != POOL
    assert "windows.repair" in needed.downstream_task_ids


def test_loading_the_dags_opens_nothing(home: Path) -> None:
    probe = (
        "import sys; from airflow.dag_processing.dagbag import DagBag; bag = DagBag(sys.argv[1]);"
        "print('loaded', bag.import_errors, [m for m in ('pyspark', 'hdfs', 'psycopg', 'confluent_kafka')"
        " if m in sys.modules])"
    )
    said = run_python("-c", probe, str(DAGS))

    assert said.splitlines()[-1] == "loaded {} []", said
