"""A running Airflow, route by route: a visitor without a valid token gets no answer, and a viewer changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus

import pytest
import requests
from tests.airflow_users import log_in
from tests.conftest import pause_when_all_have_ended
from tests.hostile.routes import LOGIN, PUBLIC, VISITORS, fill, is_refused, make_headers, make_token
from tests.programs import run_python

from onceover.config.endpoints import address
from onceover.ledger.database import upgrade_schema
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.airflow, pytest.mark.rare]
OF_PAGE = """
import json
from tests.airflow_home import name_airflow_home
name_airflow_home()
from onceover_airflow.page.app import build_app
from tests.hostile.routes import list_routes
print(json.dumps(list(list_routes(build_app(), "/onceover"))))
"""
CHANGES = ("POST", "PUT", "PATCH", "DELETE")
OWN = {"POST /api/v2/dags/{dag_id}/favorite"}
"""What a viewer may: a list of favourites of one's own."""


@pytest.fixture(scope="module")
def routes(airflow: AirflowRest) -> list[tuple[str, str]]:
    """Method and path of each route that Airflow documents, and of each of the page."""
    documented = requests.get(f"{address('airflow')}/openapi.json", timeout=60).json()["paths"]
    of_airflow = [(method.upper(), path) for path, methods in documented.items() for method in methods]
    of_page = [(method, path) for method, path in json.loads(run_python("-c", OF_PAGE).splitlines()[-1])]
    assert len(of_airflow) > 80
    assert len(of_page) > 15
    return sorted({*of_airflow, *of_page})


@pytest.fixture
def unannounced(airflow: AirflowRest) -> Iterator[None]:
    """While no schedule tells Airflow of windows that other tests published."""
    pause_when_all_have_ended(airflow, "announce_published")
    yield
    airflow.pause("announce_published", False)


def ask(method: str, path: str, number: int, token: str | None) -> requests.Response:
    url = address("airflow") + fill(path, number)
    return requests.request(method, url, headers=make_headers(token, number), timeout=60, allow_redirects=False)


def list_state(airflow: AirflowRest) -> Iterator[object]:
    """Yield what a change of a viewer's would show in."""
    for path in ("dags", "pools", "connections", "variables", "backfills?dag_id=repair_history", "assets/events"):
        answer = airflow._call("GET", f"/api/v2/{path}")
        yield path, answer["total_entries"], [row.get("is_paused") for row in answer.get("dags", [])]
    for dag in ("repair_on_call", "restore_window", "accept_loss", "take_windows", "reread_window", "restate_history"):
        yield dag, len(airflow.runs(dag))


def test_running_airflow_keeps_out_whoever_has_no_valid_token(stack: Stack, routes: list[tuple[str, str]]) -> None:
    secret = (stack.local / "secrets" / "airflow-jwt").read_text().strip()
    good = log_in(stack, "admin")
    assert ask("GET", "/api/v2/dags", 0, make_token("good", good, secret)).status_code == HTTPStatus.OK
    wrong = []
    for number, (method, path) in enumerate(routes):
        for visitor in VISITORS:
            answer = ask(method, path, number, make_token(visitor, good, secret))
            name = f"{method} {path}"
            if name not in PUBLIC | LOGIN and not is_refused(answer, path):
                wrong.append((name, visitor, answer.status_code))
    assert wrong == []


@pytest.mark.usefixtures("unannounced")
def test_viewer_changes_nothing_by_any_route(stack: Stack, airflow: AirflowRest, routes: list[tuple[str, str]]) -> None:
    before, token = list(list_state(airflow)), log_in(stack, "viewer")
    answers = {
        f"{method} {path}": ask(method, path, number, token).status_code
        for number, (method, path) in enumerate(routes)
        if method in CHANGES
    }
    assert len(answers) > 30
    done = {name for name, status in answers.items() if status < HTTPStatus.BAD_REQUEST}
    assert done <= OWN, done - OWN
    assert answers["POST /api/v2/dags/{dag_id}/dagRuns"] == HTTPStatus.FORBIDDEN
    assert answers["PATCH /api/v2/dags/{dag_id}"] == HTTPStatus.FORBIDDEN
    assert list(list_state(airflow)) == before


def test_viewer_reads_every_page(stack: Stack, routes: list[tuple[str, str]]) -> None:
    upgrade_schema(address("postgres"))
    token = log_in(stack, "viewer")
    answers = {path: ask(method, path, 0, token).status_code for method, path in routes if path.startswith("/onceover")}
    wrong = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.INTERNAL_SERVER_ERROR}
    assert not wrong & set(answers.values())
