"""Which routes an Airflow with the page has, what of them anybody gets, and tokens with one thing wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from fastapi.routing import APIRoute
from starlette.routing import Mount
from tests.airflow_home import DAGS

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


def make_token(visitor: str, good: str, secret: str) -> str | None:
    """Return that good token of an Airflow with this secret, with one thing wrong."""
    import jwt

    claims, head = jwt.decode(good, options={"verify_signature": False}), jwt.get_unverified_header(good)
    past = {name: int((datetime.now(UTC) - timedelta(hours=2)).timestamp()) for name in ("exp", "nbf", "iat")}
    made: Mapping[str, Callable[[], str | None]] = {
        "good": lambda: good,
        "no token": lambda: None,
        "expired": lambda: jwt.encode(claims | past, secret, algorithm=head["alg"], headers=head),
        "foreign key": lambda: jwt.encode(claims, "y" * 64, algorithm=head["alg"], headers=head),
        "no algorithm": lambda: jwt.encode(claims, "", algorithm="none", headers={**head, "alg": "none"}),
    }
    return made[visitor]()


def make_headers(token: str | None, number: int) -> dict[str, str]:
    """Return the headers of a request with that token: in turn as a client's and as a browser's."""
    if token is None:
        return {}
    return {"Authorization": f"Bearer {token}"} if number % 8 < 4 else {"Cookie": f"_token={token}"}


class Answer(Protocol):
    """An answer of either client library."""

    status_code: int

    @property
    def headers(self) -> Any: ...


def is_refused(answer: Answer, path: str) -> bool:
    """Return whether an answer keeps the visitor out: a page of ours without a session leads to the login."""
    leads_to_login = answer.headers.get("location", "").startswith("/api/v2/auth/login?")
    return answer.status_code in (401, 403) or (
        answer.status_code == 303 and path.startswith("/onceover/") and leads_to_login
    )


def is_pinned(name: str, status: int) -> bool:
    return name in PUBLIC or (name in LOGIN and status >= 400) or (name in GONE and status == 404)
