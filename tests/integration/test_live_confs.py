"""Hostile confs for every DAG with a form, at a running Airflow: refused before a run exists, or a red run that wrote
nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.airflow_users import log_in
from tests.conftest import pause_when_all_have_ended
from tests.hostile.live_bodies import DAG, WAITING, encode, list_bodies
from tests.hostile.live_confs import Sent, list_refused, list_spoiled, make_right, takes
from tests.hostile.live_oracles import hash_tables, judge_run
from tests.hostile.texts import CANARY
from tests.hostile.wrong_confs import list_taken
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import land_twice

from onceover.config.endpoints import address
from onceover.ledger.database import Connection
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]
SPOILED = 70
WRITERS = ("announce_published", "expire_raw", "sweep_certified", "watch_deadlines")
"""The DAGs whose schedule writes to the ledger, besides the paused `repair_failed_windows`."""
Send = Callable[[str, bytes], requests.Response]


@pytest.fixture
def send(stack: Stack, airflow: AirflowRest) -> Send:
    """A function that sends a body as `oncall`, who starts runs at night."""
    headers = {"Authorization": f"Bearer {log_in(stack, 'oncall')}", "Content-Type": "application/json"}

    def post(dag: str, body: bytes) -> requests.Response:
        url = f"{address('airflow')}/api/v2/dags/{dag}/dagRuns"
        return requests.post(url, body, headers=headers, timeout=60)

    return post


@pytest.fixture
def quiet_lane(lanes: Lanes, airflow: AirflowRest) -> Iterator[Lane]:
    """A pipeline with two failed windows, in every form, while no schedule writes to the ledger."""
    lane = lanes()
    land_twice(lane, [event(minute) for minute in (1, 6)])
    for dag, conf in make_right("").items():
        if "pipeline" in conf:
            airflow.wait_for_choice(dag, "pipeline", lane.name)
    for dag in WRITERS:
        pause_when_all_have_ended(airflow, dag)
    airflow.pause("expire_raw", False)  # a paused DAG begins no run, and its schedule has none until the next night
    yield lane
    for dag in WRITERS:
        airflow.pause(dag, False)


@pytest.fixture
def ledger(quiet_lane: Lane) -> Iterator[Connection]:
    """The ledger, with the canary table that some texts try to drop."""
    with quiet_lane.ledger() as ledger:
        ledger.execute(f"CREATE TABLE public.{CANARY.lower()} AS SELECT 1 AS alive")
        yield ledger
        ledger.execute(f"DROP TABLE public.{CANARY.lower()}")


def read_forms(airflow: AirflowRest) -> dict[str, dict[str, Any]]:
    """Return the params of every DAG that has some, as Airflow keeps them."""
    dags = [row["dag_id"] for row in airflow._call("GET", "/api/v2/dags")["dags"]]
    details = {dag: airflow._call("GET", f"/api/v2/dags/{dag}/details")["params"] for dag in dags}
    return {dag: params for dag, params in details.items() if params}


def count_runs(airflow: AirflowRest) -> dict[str, int]:
    """Return the number of runs that persons started, of every DAG with a form."""
    return {dag: len(airflow.runs(dag, "manual")) for dag in make_right("")}


def start(send: Send, dag: str, body: bytes) -> str:
    """Start a run, and return its ID."""
    answer = send(dag, body)
    assert answer.ok, (dag, body[:300], answer.text)
    return str(answer.json()["dag_run_id"])


def end_waiting(airflow: AirflowRest, run: str) -> list[str]:
    """End a run that waits for its date, as a person does, and return its tasks that had begun."""
    begun = [task["task_id"] for task in airflow.tasks(DAG, run) if task["start_date"]]
    airflow._call("PATCH", f"/api/v2/dags/{DAG}/dagRuns/{run}", {"state": "failed"})
    return begun


def test_conf_that_no_form_takes_makes_no_run(airflow: AirflowRest, send: Send, tmp_path: Path) -> None:
    forms, file, before = read_forms(airflow), tmp_path / "canary", count_runs(airflow)
    right = make_right("flights")
    assert sorted(forms) == sorted(right), "each DAG with a form has a conf that is right"
    assert [dag for dag, conf in right.items() if not takes(forms[dag], conf)] == []
    confs = [*list_refused(), *list_spoiled(SPOILED, forms, str(file))]
    tries = [(sent.dag, sent.encode(), 500) for sent in confs]
    tries += [(DAG, body, below) for body, below in list_bodies(str(file))]
    answers = [(dag, body[:300], send(dag, body).status_code, below) for dag, body, below in tries]
    assert [(dag, body, status) for dag, body, status, below in answers if not 400 <= status < below] == []
    assert count_runs(airflow) == before
    assert not file.exists()


def test_conf_that_no_task_takes_is_red_and_writes_nothing(
    airflow: AirflowRest, send: Send, quiet_lane: Lane, ledger: Connection, tmp_path: Path
) -> None:
    file, before = tmp_path / "canary", hash_tables(ledger)
    sent = list(list_taken(quiet_lane.name, str(file)))
    assert {each.dag for each in sent} == set(make_right(""))
    runs = [start(send, each.dag, each.encode()) for each in sent]
    waiting = [start(send, DAG, encode(fields, "")) for fields in WAITING]
    for each, run in zip(sent, runs, strict=True):
        airflow.wait_for_run(each.dag, run, 240)
    wrong = [
        (each, *found) for each, run in zip(sent, runs, strict=True) if (found := [*judge_run(airflow, each, run)])
    ]
    assert wrong == []
    assert [end_waiting(airflow, run) for run in waiting] == [[], []]
    assert hash_tables(ledger) == before
    assert not file.exists()

    right = Sent("take_windows", make_right(quiet_lane.name)["take_windows"])
    done = airflow.wait_for_run(right.dag, start(send, right.dag, right.encode()), 120)
    assert (done["state"], hash_tables(ledger) == before) == ("success", False), "a right conf shows in the hashes"
