"""The page in front of Airflow's own gate, in this process, with users whose tokens are really signed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

SECRET = "x" * 64
Visit = Callable[..., TestClient]


@pytest.fixture(scope="session")
def page_app() -> Iterator[FastAPI]:
    """The page mounted as Airflow mounts it, behind the middleware that reads the session's cookie."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", SECRET)
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "ann:user,vera:viewer")
        from airflow.api_fastapi.app import init_auth_manager
        from airflow.api_fastapi.auth.middlewares.refresh_token import JWTRefreshMiddleware
        from airflow.utils.db import initdb

        from onceover_airflow.page.app import build_app

        initdb()  # of the throwaway home: revoked sessions are listed there
        outer = FastAPI()
        outer.mount("/onceover", build_app())
        init_auth_manager(outer)
        outer.add_middleware(JWTRefreshMiddleware)
        yield outer


@pytest.fixture
def visit(page_app: FastAPI) -> Visit:
    """Return a maker of clients: `visit("viewer")` has a session of that role, `visit(None)` has none."""

    def make(role: str | None, seconds: int = 600) -> TestClient:
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

        client = TestClient(page_app, follow_redirects=False, raise_server_exceptions=True)
        if role is not None:
            manager: Any = get_auth_manager()
            user = SimpleAuthManagerUser(username=f"the {role}", role=role.upper())
            client.cookies.set("_token", manager.generate_jwt(user, expiration_time_in_seconds=seconds))
        return client

    return make
