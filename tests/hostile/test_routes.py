"""Every route of Airflow's own API and of the page, for visitors without a valid token: 401 or 403, never an answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.airflow_home import name_airflow_home
from tests.hostile.routes import (
    GONE,
    LOGIN,
    PUBLIC,
    VISITORS,
    fill,
    is_pinned,
    is_refused,
    list_routes,
    make_headers,
    make_token,
)
from tests.hostile.tries import SHARE
from tests.onceover_airflow.page.conftest import SECRET

name_airflow_home()
# Airflow warns of its own database and of its auth manager for trials.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("default")]
TRIES = 400


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    """Airflow's api-server with this repository's plugin, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", SECRET)
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "ann:admin,vera:viewer")
        from airflow.api_fastapi.app import create_app
        from airflow.utils.db import initdb

        initdb()
        with TestClient(create_app(apps="all"), follow_redirects=False, raise_server_exceptions=False) as client:
            client.get("/execution/health")  # this part of the server has its routes from its first request on
            yield client


def list_tokens() -> dict[str, str | None]:
    """Return each visitor's token, made of an admin's."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    manager: Any = get_auth_manager()
    good = manager.generate_jwt(SimpleAuthManagerUser(username="ann", role="ADMIN"))
    return {visitor: make_token(visitor, good, SECRET) for visitor in ("good", *VISITORS)}


@pytest.mark.parametrize("share", [pytest.param(SHARE, id="few"), pytest.param(1, id="all", marks=pytest.mark.largest)])
def test_route_keeps_out_whoever_has_no_valid_token(api: TestClient, share: int) -> None:
    tries = list(product(sorted(set(list_routes(api.app))), VISITORS))
    assert len(tries) >= TRIES
    assert {"/api/v2/dags/{dag_id}/dagRuns", "/onceover/{pipeline}"} <= {path for (_, path), _ in tries}
    tokens = list_tokens()
    pinned, wrong = set(), set()
    for number, ((method, path), visitor) in enumerate(tries):
        if (number + number // len(VISITORS)) % share:  # so that each visitor is among those of `make test`
            continue
        api.cookies.clear()
        headers, name = make_headers(tokens[visitor], number), f"{method} {path}"
        answer = api.request(method, fill(path, number), headers=headers)
        if is_pinned(name, answer.status_code):
            pinned.add(name)
        elif not is_refused(answer, path):
            wrong.add((name, visitor, answer.status_code))
    assert wrong == set(), "\n".join(map(str, sorted(wrong)))
    assert share > 1 or pinned == PUBLIC | LOGIN | GONE


def test_valid_token_is_let_in(api: TestClient) -> None:
    for number in (0, 4):
        api.cookies.clear()
        assert api.get("/api/v2/dags", headers=make_headers(list_tokens()["good"], number)).status_code == 200
