"""The embedded Airflow: its four processes with one environment, on the embedded PostgreSQL, and its users."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import requests

from onceover.config.airflow import POOL
from onceover.errors import TransientError, UnreachableError
from onceover_local.stack.files import make_secret, write_whole
from onceover_local.stack.place import Place, Say
from onceover_local.stack.ports import LOOPBACK
from onceover_local.stack.postgres import Postgres
from onceover_local.stack.process import Command, Process
from onceover_local.stack.spark import find_spark_home, make_master_url

USERS: Final = {"admin": "admin", "oncall": "user", "viewer": "viewer"}
"""The users with their roles: a `user` starts DAGs, and changes neither pools nor variables nor connections."""
_HEALTHY_AS: Final = {
    "api-server": ("metadatabase",),
    "scheduler": ("scheduler",),
    "dag-processor": ("dag_processor",),
    "triggerer": ("triggerer",),
}


class AirflowProcess:
    """A `Part`: api-server, scheduler, dag-processor or triggerer. The api-server starts first; tasks need it."""

    start_s = 180.0
    stop_s = 30.0

    def __init__(self, place: Place, postgres: Postgres, what: str, *, on_cluster: bool = False) -> None:
        self.name = f"airflow-{what}"
        self.ports: tuple[str, ...] = ("airflow",) if what == "api-server" else ()
        self._what = what
        self._place = place
        self._postgres = postgres
        self._on_cluster = on_cluster
        self._folder = place.local / "airflow"
        self.process = Process(self.name, place.local)

    def prepare(self, say: Say) -> Command:
        passwords = {user: make_secret(self._place.local / "secrets", f"airflow-{user}") for user in USERS}
        write_whole(self._folder / "passwords.json", json.dumps(passwords) + "\n", mode=0o600)
        environment = self.make_environment()
        if self._what == "api-server":
            self._migrate(environment, say)
        # Without --skip-serve-logs they would open log servers on every interface; one folder holds the logs anyway.
        quiet = ("--skip-serve-logs",) if self._what in ("scheduler", "triggerer") else ()
        return Command((*_AIRFLOW, self._what, *quiet), environment)

    def is_ready(self) -> bool:
        try:
            answer = requests.get(f"{self.get_address()}/api/v2/monitor/health", timeout=5, proxies=_NO_PROXIES)
            health: dict[str, Any] = answer.json() if answer.ok else {}
        except (requests.RequestException, ValueError):
            return False
        return all((health.get(part) or {}).get("status") == "healthy" for part in _HEALTHY_AS[self._what])

    def finish(self, say: Say) -> None:
        if self._what == "api-server":
            self._ensure_pool()

    def get_address(self) -> str:
        return f"http://{LOOPBACK}:{self._place.ports['airflow']}"

    def list_endpoints(self) -> Mapping[str, str]:
        return {"airflow": self.get_address()} if self._what == "api-server" else {}

    def _migrate(self, environment: Mapping[str, str], say: Say) -> None:
        """Migrate Airflow's database once for each version; the stamp is kept with the database. Raises
        TransientError if that fails."""
        stamp = self._place.get_folder("postgres") / "airflow-migrated"
        version = importlib.metadata.version("apache-airflow-core")
        if stamp.exists() and stamp.read_text() == version:
            return
        say(self.name, "migrates its database")
        log = self.process.log.with_name("airflow-migrate.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as opened:
            command = [*_AIRFLOW, "db", "migrate"]
            whole = {**os.environ, **environment}
            done = subprocess.run(command, env=whole, stdout=opened, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise TransientError(f"`airflow db migrate` failed; see the end of {log}")
        write_whole(stamp, version)

    def _ensure_pool(self) -> None:
        """Create the pool of one slot unless it exists: a task in a pool that does not exist never starts. Raises
        UnreachableError if that fails."""
        login = {"username": "admin", "password": make_secret(self._place.local / "secrets", "airflow-admin")}
        try:
            with requests.Session() as http:
                http.trust_env = False
                token = http.post(f"{self.get_address()}/auth/token", json=login, timeout=30, allow_redirects=False)
                token.raise_for_status()
                http.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
                pool: dict[str, Any] = {"name": POOL, "slots": 1, "description": "one Spark application at a time"}
                answer = http.post(f"{self.get_address()}/api/v2/pools", json=pool, timeout=30)
                if answer.status_code != requests.codes.conflict:
                    answer.raise_for_status()
        except requests.RequestException as error:
            raise UnreachableError(f"Airflow started, but its pool {POOL} could not be created: {error}") from error

    def make_environment(self) -> dict[str, str]:
        """Return the environment of all four processes."""
        place, secrets = self._place, self._place.local / "secrets"
        fernet = base64.urlsafe_b64encode(make_secret(secrets, "airflow-fernet").encode()[:32]).decode()
        spark = make_master_url(place) if self._on_cluster else "local[2]"
        airflow = {
            "CORE__DAGS_FOLDER": place.home / "dags",
            "CORE__PLUGINS_FOLDER": place.home / "plugins",
            "CORE__LOAD_EXAMPLES": False,
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": 3,
            "CORE__DEFAULT_TIMEZONE": "utc",
            "CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": 5,  # else forms lack a new pipeline for half a minute
            "CORE__HOSTNAME_CALLABLE": "socket.gethostname",  # the default needs a name server, which may be missing
            "CORE__EXECUTION_API_SERVER_URL": f"{self.get_address()}/execution/",
            "CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": self._folder / "passwords.json",
            "CORE__FERNET_KEY": fernet,
            "DATABASE__SQL_ALCHEMY_CONN": self._postgres.make_uri("airflow", "postgresql+psycopg2"),
            "API__HOST": LOOPBACK,
            "API__PORT": place.ports["airflow"],
            "API__BASE_URL": self.get_address(),
            "API__WORKERS": 1,
            "API__SECRET_KEY": make_secret(secrets, "airflow-api"),
            "API_AUTH__JWT_SECRET": make_secret(secrets, "airflow-jwt"),
            "WORKERS__MIN_HEARTBEAT_INTERVAL": 1,  # else a task that is skipped or fails ends 5 s later
            "DAG_PROCESSOR__REFRESH_INTERVAL": 5,
            "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 30,  # each parse costs a second of a core
            "DAG_PROCESSOR__PARSING_PROCESSES": 1,
            "LOGGING__BASE_LOG_FOLDER": place.local / "log" / "airflow",
            "LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": place.local / "log" / "airflow" / "dag_processor",
            "USAGE_DATA_COLLECTION__ENABLED": False,
        }
        return {
            "AIRFLOW_HOME": str(self._folder),
            **{f"AIRFLOW__{key}": str(value) for key, value in airflow.items()},
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": spark}),
            "ONCEOVER_HOME": str(place.home),
            "ONCEOVER_LOCAL": str(place.local),
            "SPARK_HOME": find_spark_home(),
            "SPARK_LOCAL_IP": LOOPBACK,
            "NO_PROXY": f"{LOOPBACK},localhost",
            "no_proxy": f"{LOOPBACK},localhost",
        }


_AIRFLOW: Final = (sys.executable, "-m", "airflow")
_NO_PROXIES: Final = {"http": "", "https": ""}
