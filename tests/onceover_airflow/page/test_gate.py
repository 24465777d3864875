"""Every route of the page, from the application's own list, against every kind of visitor."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Mount
from tests.hostile.routes import fill
from tests.onceover_airflow.page.conftest import Visit

# Airflow warns of its own database and of its auth manager for trials.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("default")]


def list_routes(outer: FastAPI) -> list[APIRoute]:
    (mount,) = (each for each in outer.routes if isinstance(each, Mount) and each.path == "/onceover")
    assert isinstance(mount.app, FastAPI)
    routes = mount.app.routes
    assert all(isinstance(each, APIRoute) for each in routes), "a mount or a plain route has no gate"
    return [each for each in routes if isinstance(each, APIRoute)]


def is_json(path: str) -> bool:
    return path.startswith(("/api/", "/static/"))


def test_every_route_reads_only(page_app: FastAPI) -> None:
    routes = list_routes(page_app)
    assert len(routes) >= 5
    assert {method for each in routes for method in each.methods} == {"GET"}


@pytest.mark.parametrize(("role", "seconds"), [(None, 0), ("viewer", -60)], ids=["no session", "an expired one"])
def test_route_without_a_session_is_401_or_leads_to_login(
    page_app: FastAPI, visit: Visit, role: str | None, seconds: int
) -> None:
    for route in list_routes(page_app):
        answer = visit(role, seconds).get(fill(f"/onceover{route.path}", 0) + "?a=1")
        if is_json(route.path):
            assert answer.status_code == 401, route.path
        else:
            assert answer.status_code == 303, route.path
            assert answer.headers["location"].startswith("/api/v2/auth/login?next=%2Fonceover%2F")
            assert answer.headers["location"].endswith("%3Fa%3D1")


def test_route_with_forged_session_is_403(page_app: FastAPI, visit: Visit) -> None:
    client = visit("viewer")
    head, body, signature = client.cookies["_token"].split(".")
    client.cookies.set("_token", f"{head}.{body}.{signature[::-1]}")
    for route in list_routes(page_app):
        assert client.get(fill(f"/onceover{route.path}", 0)).status_code == 403, route.path


@pytest.mark.parametrize("role", ["viewer", "user", "admin"])
def test_route_with_session_is_behind_no_further_gate(role: str, page_app: FastAPI, visit: Visit) -> None:
    for route in list_routes(page_app):
        assert visit(role).get(fill(f"/onceover{route.path}", 0)).status_code in (200, 404, 422, 503), route.path


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_route_refuses_every_other_method(method: str, page_app: FastAPI, visit: Visit) -> None:
    for route in list_routes(page_app):
        assert visit("admin").request(method, fill(f"/onceover{route.path}", 0)).status_code == 405, route.path


@pytest.mark.parametrize("path", ["docs", "redoc", "openapi.json", "docs/oauth2-redirect", "nothing/of/this"])
def test_documentation_of_fastapi_is_off(path: str, visit: Visit) -> None:
    assert visit("admin").get(f"/onceover/{path}").status_code == 404


def test_every_answer_forbids_foreign_scripts(page_app: FastAPI, visit: Visit) -> None:
    for role in (None, "admin"):
        for route in list_routes(page_app):
            headers = visit(role).get(fill(f"/onceover{route.path}", 0)).headers
            assert "default-src 'self'" in headers["content-security-policy"]
            assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
