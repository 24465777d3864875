"""The check of Airflow: its processes, and the Spark connection and the pool that the DAGs name."""

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
from onceover.config.airflow import POOL, build_master
from onceover.config.endpoints import address, start_or_set
from onceover.errors import UnreachableError

CONNECTION: Final = "spark_default"
_MASTER: Final = re.compile(r"local(\[.+\])?|yarn|spark://.+|k8s://.+")


def check_airflow(connection: str = CONNECTION) -> Iterator[Outcome]:
    """Check that the API server answers and reports every process healthy, and that the DAGs' connection and pool
    exist. Raises UnreachableError if Airflow does not answer."""
    where = address("airflow")
    try:
        health = get_json(f"{where}/api/v2/monitor/health")
    except (OSError, ValueError) as error:
        why = error.reason if isinstance(error, URLError) else error
        raise UnreachableError(f"Airflow at {where} does not answer ({why}); {start_or_set('airflow')}") from error
    sick = sorted(part for part, report in health.items() if report and report.get("status") not in ("healthy", None))
    if sick:
        names = ", ".join(part.replace("_", " ") for part in sick)
        yield Outcome("Airflow", "wrong", f"{where}: {names} not healthy; see its log (`onceover stack status`)")
    else:
        yield Outcome("Airflow", "fine", f"{where} answers, every process is healthy")
    try:
        http = _log_in(where)
        yield _check_connection(where, http, connection)
        if http is not None:
            yield from _check_pool(where, http)
    except requests.RequestException as error:
        raise UnreachableError(f"Airflow at {where} stopped answering ({type(error).__name__}); see its log") from error


def _check_pool(where: str, http: requests.Session) -> Iterator[Outcome]:
    if http.get(f"{where}/api/v2/pools/{POOL}", timeout=SECONDS).status_code == 404:
        what = f"there is no pool {POOL!r}, so its tasks never start; make it with `airflow pools set {POOL} 1 Spark`"
        yield Outcome("Airflow", "wrong", what)


def _check_connection(where: str, http: requests.Session | None, name: str) -> Outcome:
    """Return whether tasks find the connection. A connection in an environment variable takes precedence over the
    stored one, and Airflow's API does not show it: this process and an embedded scheduler are searched for it."""
    variable, scheduler = f"AIRFLOW_CONN_{name.upper()}", _find_scheduler_environment(where)
    if stated := os.environ.get(variable) or (scheduler or {}).get(variable):
        return _judge(name, f"by {variable}", _parse(stated))
    if http is None:
        what = (
            f"its connection {name!r} cannot be read from here; check it with `airflow connections get {name}` where "
            "tasks run: the provider replaces an unknown connection by --master yarn"
        )
        return Outcome("Airflow", "note", what)
    answer = http.get(f"{where}/api/v2/connections/{quote(name)}", timeout=SECONDS)
    if answer.ok:
        stored: dict[str, Any] = answer.json()
        return _judge(name, "stored in Airflow", (stored["conn_type"], stored.get("host"), stored.get("port")))
    add = f"run `airflow connections add {name} --conn-type spark --conn-host 'local[2]'`, or set {variable}"
    if answer.status_code == 404 and scheduler is not None:
        what = f"there is no connection {name!r}, so no repair can start Spark; {add}"
        return Outcome("Airflow", "wrong", what)
    what = f"no connection {name!r} is stored ({answer.status_code}); unless {variable} is set for tasks, {add}"
    return Outcome("Airflow", "note", what)


def _judge(name: str, how: str, connection: tuple[str, str | None, int | None]) -> Outcome:
    """Return whether spark-submit can use the connection."""
    master = build_master(*connection)
    if _MASTER.fullmatch(master):
        return Outcome("Airflow", "fine", f"connection {name} ({how}) is {master}")
    what = (
        f"connection {name} ({how}) means --master {master!r}, which is not a master; give it type spark and a "
        "host like local[2], yarn, spark://HOST:7077 or k8s://https://HOST:PORT"
    )
    return Outcome("Airflow", "wrong", what)


def _parse(stated: str) -> tuple[str, str | None, int | None]:
    """Return type, host and port of a connection in an environment variable: JSON, or a URI. Unreadable text is not
    shown, as it may hold a password."""
    try:
        if stated.lstrip().startswith("{"):
            values = json.loads(stated)
            return str(values.get("conn_type", "")), values.get("host"), values.get("port")
        parts = urlsplit(stated)
        return parts.scheme, unquote(parts.hostname or ""), parts.port
    except ValueError:
        return "", None, None


def _find_scheduler_environment(where: str) -> Mapping[str, str] | None:
    """Return the environment of that Airflow's scheduler, None if no installed package knows it: the embedded stack
    knows its own."""
    environments = (point.load()(where) for point in entry_points(group="onceover.scheduler_environments"))
    return next((environment for environment in environments if environment is not None), None)


def _log_in(where: str) -> requests.Session | None:
    """Return a session as the embedded stack's admin; None for any other Airflow, whose passwords are unknown."""
    local = endpoints.local_folder()
    if endpoints.read_endpoints(endpoints.endpoints_file(local)).get("airflow") != where:
        return None
    try:
        password = json.loads((local / "airflow" / "passwords.json").read_text())["admin"]
        http = requests.Session()
        http.trust_env = False  # a proxy of the environment must not see a local password, nor a redirect's target
        login = {"username": "admin", "password": password}
        token = http.post(f"{where}/auth/token", json=login, timeout=SECONDS, allow_redirects=False)
        http.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
    except (OSError, ValueError, LookupError):
        return None
    return http
