"""The embedded Airflow as its users meet it: all four processes well, its users, the pool, the DAGs, no open port."""

from __future__ import annotations

from contextlib import closing

import psutil
import pytest
import requests
from tests.airflow_users import read_password

from onceover.config import endpoints
from onceover.config.airflow import POOL
from onceover.errors import TerminalError
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack import Stack
from onceover_local.stack.ports import LOOPBACK

pytestmark = [pytest.mark.stack, pytest.mark.airflow]

NAMES = ["airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer"]


def test_dags_load_and_their_pool_has_one_slot(airflow: AirflowRest) -> None:
    assert airflow.import_errors() == []
    answer = airflow._call("GET", f"/api/v2/pools/{POOL}")
    assert answer["slots"] == 1


def open_as(stack: Stack, user: str) -> closing[AirflowRest]:
    return closing(AirflowRest(endpoints.address("airflow"), user, read_password(stack, user)))


def test_viewer_may_look_and_not_touch(stack: Stack, airflow: AirflowRest) -> None:
    with open_as(stack, "viewer") as viewer:
        assert viewer.runs("repair_on_call") == airflow.runs("repair_on_call")
        with pytest.raises(TerminalError, match="403"):
            viewer.pause("repair_on_call", True)


def test_person_on_call_starts_dags_and_changes_no_settings(stack: Stack, airflow: AirflowRest) -> None:
    with open_as(stack, "oncall") as oncall:
        with pytest.raises(TerminalError, match="400"):  # of the form, not of rights
            oncall.trigger("repair_on_call", {"pipeline": "none of these"})
        with pytest.raises(TerminalError, match="403"):
            oncall.ensure_pool("mine", 1, "a test")


def test_airflow_refuses_access_without_a_password(airflow: AirflowRest) -> None:
    address = endpoints.address("airflow")
    assert requests.get(f"{address}/api/v2/dags", timeout=30).status_code == 401
    guess = {"username": "admin", "password": "admin"}
    assert requests.post(f"{address}/auth/token", json=guess, timeout=30).status_code == 401


def test_airflow_listens_on_loopback_only(stack: Stack, airflow: AirflowRest) -> None:
    leaders = [psutil.Process(stack.find_pid(name)) for name in NAMES]
    theirs = {process.pid for leader in leaders for process in (leader, *leader.children(recursive=True))}
    # One look at the whole machine: a worker may end between two looks, and then it listens no more.
    heard = [
        connection.laddr.ip
        for connection in psutil.net_connections("inet")
        if connection.pid in theirs and connection.status == psutil.CONN_LISTEN
    ]
    assert set(heard) == {LOOPBACK}


@pytest.mark.rare
def test_killed_scheduler_ends_its_workers_and_restarts_alone(stack: Stack, airflow: AirflowRest) -> None:
    others = {name: stack.find_pid(name) for name in NAMES if name != "airflow-scheduler"}
    workers = psutil.Process(stack.find_pid("airflow-scheduler")).children(recursive=True)
    assert workers
    stack.kill_part("airflow-scheduler")
    assert stack.up({"airflow"}) == ["airflow-scheduler"]
    assert not [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE]
    assert {name: stack.find_pid(name) for name in others} == others
    airflow.wait_until_healthy(60)
