"""Links into the page from messages and tasks, with Airflow's address and without it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from onceover_airflow.operators.repair import ConfirmOperator, describe_worse
from onceover_airflow.operators.sweep import SweepOperator, describe_differing
from onceover_airflow.page_links import link_window

pytestmark = pytest.mark.airflow

START = "2013-01-05T14:00Z"
BASE = "https://airflow.example.com/deep"


@dataclass(frozen=True)
class Key:
    dag_id: str = "repair_on_call"
    run_id: str = "manual__2013-01-05T14:00:00+00:00"


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", BASE)


@pytest.mark.usefixtures("base")
def test_complaints_end_with_the_address_of_their_first_window() -> None:
    address = f"; open {BASE}/onceover/events/{START}"
    differing = {"pipeline": "events", "compared": 3, "reopened": 1, "differing": [{"window": START}]}
    assert str(describe_worse("events", [(START, "differs")], [])).endswith(address)
    assert describe_differing(differing).endswith(address)


@pytest.mark.usefixtures("base")
def test_task_opens_its_run_in_the_frame() -> None:
    task = ConfirmOperator(task_id="confirm", pipeline="events", detection=None)
    (link,) = task.operator_extra_links
    path = "repair_on_call/manual__2013-01-05T14%3A00%3A00%2B00%3A00"
    assert link.get_link(task, ti_key=Key()) == f"{BASE}/plugin/onceover/deep/onceover/runs/{path}"


@pytest.mark.usefixtures("base", "project")
def test_sweep_opens_its_pipeline_in_the_frame() -> None:
    task = SweepOperator(task_id="sweep", pipeline="events")
    (link,) = task.operator_extra_links
    assert link.get_link(task, ti_key=Key()) == f"{BASE}/plugin/onceover/deep/onceover/events"


def test_message_has_no_link_without_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "")
    assert link_window("events", START) == ""
