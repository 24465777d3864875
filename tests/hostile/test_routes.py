"""Every route of Airflow's own API and of the page, for visitors without a valid token: 401 or 403, never an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from httpx2 import Response
from starlette.routing import Mount
from tests.airflow_home import DAGS, name_airflow_home
from tests.hostile.tries import SHARE
from tests.onceover_airflow.page.conftest import SECRET

name_airflow_home()
# Airflow warns of its own database and of its auth manager for trials.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("default")]
TRIES = 400
VISITORS = ("no token", "expired", "foreign key", "no algorithm")
OUR_DAGS = sorted(path.stem for path in DAGS.glob("*.py"))
FILLED = {"pipeline": "flights", "window": "2013-01-05T14:00Z", "request_id": "7", "run_id": "manual__1"}
PUBLIC = {
    "GET /api/v2/monitor/health", "GET /api/v2/version", "GET /execution/changelog", "GET /execution/health",
    "GET /execution/health/ping", "GET /api/v2/auth/login", "GET /api/v2/auth/logout", "GET /auth/{rest_of_path:path}",
    "GET /{rest_of_path:path}",
}  # fmt: skip
"""What anybody gets: whether Airflow runs and which version, the way to the login, and the files of its UI."""
LOGIN = {"POST /auth/token", "POST /auth/token/cli"}
"""What takes a name and a password instead: without, an error."""
GONE = {"GET /api/v1/{_:path}", "GET /api/{_:path}", "GET /health"}
"""What tells anybody that it is not there."""


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


def list_routes(app: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield method and path of each route of an application and of those that are mounted in it."""
    for route in app.routes:
        if isinstance(route, Mount):
            yield from list_routes(route.app, prefix + route.path) if hasattr(route.app, "routes") else ()
        elif isinstance(route, APIRoute):
            yield from ((method, prefix + route.path) for method in sorted(route.methods))


def fill(path: str, number: int) -> str:
    """Return the path with values: our DAGs in turn, wherever a DAG is asked for."""
    values = FILLED | {"dag_id": OUR_DAGS[number % len(OUR_DAGS)]}
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values.get(found[1], "1"), path)


def make_token(visitor: str) -> str | None:
    """Return an admin's token with one thing wrong."""
    import jwt
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    manager: Any = get_auth_manager()
    token = manager.generate_jwt(SimpleAuthManagerUser(username="ann", role="ADMIN"))
    claims = jwt.decode(token, options={"verify_signature": False})
    head = jwt.get_unverified_header(token)
    past = {name: int((datetime.now(UTC) - timedelta(hours=2)).timestamp()) for name in ("exp", "nbf", "iat")}
    made: dict[str, Callable[[], str | None]] = {
        "good": lambda: token,
        "no token": lambda: None,
        "expired": lambda: jwt.encode(claims | past, SECRET, algorithm=head["alg"], headers=head),
        "foreign key": lambda: jwt.encode(claims, "y" * 64, algorithm=head["alg"], headers=head),
        "no algorithm": lambda: jwt.encode(claims, "", algorithm="none", headers={**head, "alg": "none"}),
    }
    return made[visitor]()


def is_refused(answer: Response, path: str) -> bool:
    """Return whether an answer keeps the visitor out: a page of ours without a session leads to the login."""
    leads_to_login = answer.headers.get("location", "").startswith("/api/v2/auth/login?")
    return answer.status_code in (401, 403) or (
        answer.status_code == 303 and path.startswith("/onceover/") and leads_to_login
    )


def is_pinned(name: str, status: int) -> bool:
    return name in PUBLIC or (name in LOGIN and status >= 400) or (name in GONE and status == 404)


@pytest.mark.parametrize("share", [pytest.param(SHARE, id="few"), pytest.param(1, id="all", marks=pytest.mark.rare)])
def test_route_keeps_out_whoever_has_no_valid_token(api: TestClient, share: int) -> None:
    tries = list(product(sorted(set(list_routes(api.app))), VISITORS))
    assert len(tries) >= TRIES
    assert {"/api/v2/dags/{dag_id}/dagRuns", "/onceover/{pipeline}"} <= {path for (_, path), _ in tries}
    tokens = {visitor: make_token(visitor) for visitor in VISITORS}
    pinned, wrong = set(), set()
    for number, ((method, path), visitor) in enumerate(tries):
        if (number + number // len(VISITORS)) % share:  # so that each visitor is among those of `make test`
            continue
        headers, token = {}, tokens[visitor]
        if token:
            headers = {"Authorization": f"Bearer {token}"} if number % 8 < 4 else {"Cookie": f"_token={token}"}
        api.cookies.clear()
        answer, name = api.request(method, fill(path, number), headers=headers), f"{method} {path}"
        if is_pinned(name, answer.status_code):
            pinned.add(name)
        elif not is_refused(answer, path):
            wrong.add((name, visitor, answer.status_code))
    assert wrong == set(), "\n".join(map(str, sorted(wrong)))
    assert share > 1 or pinned == PUBLIC | LOGIN | GONE


def test_valid_token_is_let_in(api: TestClient) -> None:
    for headers in ({"Authorization": f"Bearer {make_token('good')}"}, {"Cookie": f"_token={make_token('good')}"}):
        api.cookies.clear()
        assert api.get("/api/v2/dags", headers=headers).status_code == 200
