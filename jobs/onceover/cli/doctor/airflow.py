"""Airflow as doctor looks at it: its processes, the Spark connection that the DAGs name, and their pool."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import quote, unquote, urlsplit

import requests

from onceover.cli.doctor.outcome import SECONDS, Outcome, get_json
from onceover.config import endpoints
from onceover.config.airflow import POOL
from onceover.config.endpoints import address
from onceover.errors import UnreachableError

CONNECTION: Final = "spark_default"
_MASTER: Final = re.compile(r"local(\[.+\])?|yarn|spark://.+|k8s://.+")


def airflow(connection: str = CONNECTION) -> Iterator[Outcome]:
    """Whether the API server answers and says that each of Airflow's processes is healthy, and whether the connection
    and the pool that the DAGs name are there."""
    where = address("airflow")
    try:
        health = get_json(f"{where}/api/v2/monitor/health")
    except (OSError, ValueError) as error:
        why = error.reason if isinstance(error, URLError) else error
        raise UnreachableError(
            f"Airflow at {where} does not answer ({why}); start it (`onceover stack up`) or set ONCEOVER_AIRFLOW"
        ) from error
    sick = sorted(part for part, told in health.items() if told and told.get("status") not in ("healthy", None))
    if sick:
        names = ", ".join(part.replace("_", " ") for part in sick)
        yield Outcome("Airflow", "wrong", f"{where}: {names} not healthy; look into its log (`onceover stack status`)")
    else:
        yield Outcome("Airflow", "fine", f"{where} answers, every process is healthy")
    try:
        http = _logged_in(where)
        yield _connection(where, http, connection)
        if http is not None:
            yield from _pool(where, http)
    except requests.RequestException as error:
        raise UnreachableError(f"Airflow at {where} stopped answering ({type(error).__name__}); see its log") from error


def _pool(where: str, http: requests.Session) -> Iterator[Outcome]:
    if http.get(f"{where}/api/v2/pools/{POOL}", timeout=SECONDS).status_code == 404:
        what = f"there is no pool {POOL!r}, and tasks wait in it for ever; `airflow pools set {POOL} 1 Spark` makes it"
        yield Outcome("Airflow", "wrong", what)


def _connection(where: str, http: requests.Session | None, name: str) -> Outcome:
    """Whether tasks find the connection. What an environment variable says comes before what Airflow has stored, and
    Airflow tells nobody of it: so the variable is looked for here, and in an embedded scheduler's environment."""
    variable, scheduler = f"AIRFLOW_CONN_{name.upper()}", _scheduler_environment(where)
    if stated := os.environ.get(variable) or (scheduler or {}).get(variable):
        return _judged(name, f"by {variable}", _parsed(stated))
    if http is None:
        what = (
            f"nobody here may ask for its connection {name!r}; see that `airflow connections get {name}` knows it "
            "where tasks run: the provider takes an unknown one for --master yarn"
        )
        return Outcome("Airflow", "note", what)
    answer = http.get(f"{where}/api/v2/connections/{quote(name)}", timeout=SECONDS)
    if answer.ok:
        stored: dict[str, Any] = answer.json()
        return _judged(name, "stored in Airflow", (stored["conn_type"], stored.get("host"), stored.get("port")))
    add = f"`airflow connections add {name} --conn-type spark --conn-host 'local[2]'` adds one, {variable} states one"
    if answer.status_code == 404 and scheduler is not None:
        what = f"there is no connection {name!r}, so no repair starts: nobody said which Spark to use; {add}"
        return Outcome("Airflow", "wrong", what)
    what = f"no connection {name!r} is stored ({answer.status_code}); unless {variable} is set for tasks, {add}"
    return Outcome("Airflow", "note", what)


def _judged(name: str, how: str, found: tuple[str, str | None, int | None]) -> Outcome:
    """Whether spark-submit can use the connection, whose master it puts together as SparkSubmitHook does."""
    kind, host, port = found[0], found[1] or "", found[2]
    master = host if kind == "spark" and host and ("://" in host or not port) else f"{kind}://{host}"
    master += f":{port}" if port else ""
    if _MASTER.fullmatch(master):
        return Outcome("Airflow", "fine", f"connection {name} ({how}) is {master}")
    what = (
        f"connection {name} ({how}) means --master {master!r}, which is none; give it type spark and a host like "
        "local[2], yarn, spark://HOST:7077 or k8s://https://HOST:PORT"
    )
    return Outcome("Airflow", "wrong", what)


def _parsed(stated: str) -> tuple[str, str | None, int | None]:
    """Type, host and port of a connection as an environment variable states it: JSON, or a URI. What cannot be read
    is not shown: it may hold a password."""
    try:
        if stated.lstrip().startswith("{"):
            values = json.loads(stated)
            return str(values.get("conn_type", "")), values.get("host"), values.get("port")
        parts = urlsplit(stated)
        return parts.scheme, unquote(parts.hostname or ""), parts.port
    except ValueError:
        return "", None, None


def _scheduler_environment(where: str) -> Mapping[str, str] | None:
    """The environment of that Airflow's scheduler, if a package that is installed here knows it: the embedded stack
    does of its own."""
    found = (each.load()(where) for each in entry_points(group="onceover.scheduler_environments"))
    return next((environment for environment in found if environment is not None), None)


def _logged_in(where: str) -> requests.Session | None:
    """A session as the embedded stack's admin; None for any other Airflow, whose passwords nobody told us."""
    local = endpoints.local_folder()
    if endpoints.read_endpoints(endpoints.endpoints_file(local)).get("airflow") != where:
        return None
    try:
        password = json.loads((local / "airflow" / "passwords.json").read_text())["admin"]
        http = requests.Session()
        http.trust_env = False  # a proxy of the environment must not see a local password
        login = {"username": "admin", "password": password}
        token = http.post(f"{where}/auth/token", json=login, timeout=SECONDS)
        http.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
    except (OSError, ValueError, LookupError):
        return None
    return http
