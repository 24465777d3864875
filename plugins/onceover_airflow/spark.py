"""A worker's start of a Spark application: its connection, its environment, and the meaning of its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from onceover.config.airflow import build_master
from onceover.config.os_user import require_passwd_entry
from onceover.config.raw_stores import list_raw_stores
from onceover.errors import ConfigurationError, OnceoverError, TerminalError, TransientError, UsageError
from onceover.spark import class_archive

_ADDRESSES = ("KAFKA", "WEBHDFS", "HDFS", "POSTGRES", "REGISTRY", "RAW_STORES")


def spark_connection(conn_id: str) -> Connection:
    """Return the connection. Raises ConfigurationError if unknown, as SparkSubmitHook would assume `--master yarn`."""
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise ConfigurationError(
            f"Airflow has no connection {conn_id!r}, which names the Spark to use; add it with "
            f"`airflow connections add {conn_id} --conn-type spark --conn-host 'local[*]'`, or set "
            f"AIRFLOW_CONN_{conn_id.upper()}"
        ) from None


def driver_environment(
    connection: Connection, environment: Mapping[str, str], *, is_brief: bool = False
) -> dict[str, str]:
    """Return the variables that spark-submit needs beyond the worker's own environment. Never a secret.

    A driver on this machine inherits the worker's environment and only has to use this very Python. For YARN and
    Kubernetes, Airflow writes these variables into the command line, which every user of the machine can read: so they
    are paths, and for a driver in `cluster` mode addresses. Raises TerminalError for an address with a password there,
    ConfigurationError for a nameless user.
    """
    require_passwd_entry()
    master = build_master(connection.conn_type, connection.host, connection.port)
    is_shown = master.startswith(("yarn", "k8s"))
    if connection.extra_dejson.get("deploy-mode") == "cluster":
        if not is_shown:
            return {}  # SparkSubmitHook refuses any there; the cluster's own environment holds the addresses
        stores = (name.upper() for name in list_raw_stores())
        names = dict.fromkeys(f"ONCEOVER_{name}" for name in (*_ADDRESSES, *stores))
        return {name: _without_secret(name, environment[name]) for name in names if name in environment}
    binaries = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join([binaries, environment["PATH"]] if "PATH" in environment else [binaries]),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **({"PYSPARK_PYTHON": sys.executable} if master.startswith("local") else {}),
        **({} if is_shown else class_archive.make_driver_options(environment, is_brief=is_brief)),
    }


def name_application(connection: Connection, file: Path) -> str:
    """Return the file as spark-submit takes it. A driver in a pod of its own has it in its image, at the same path;
    without the scheme, Spark asks for a folder to upload it to."""
    master = build_master(connection.conn_type, connection.host, connection.port)
    is_in_pod = master.startswith("k8s") and connection.extra_dejson.get("deploy-mode") == "cluster"
    return f"local://{file}" if is_in_pod else str(file)


def meaning_of_exit(code: int | None, what: str) -> OnceoverError | None:
    """Return the error behind an application's exit code, so that only transient ones are retried, None if unknown."""
    if code == TransientError.exit_code:
        return TransientError(f"{what} met a part that is down or busy (exit {code}); see its last lines above")
    if code in (UsageError.exit_code, ConfigurationError.exit_code):
        return TerminalError(
            f"{what} cannot work as configured (exit {code}); fix what its last lines above name, then clear this task"
        )
    return None


def kill_family(pid: int) -> list[int]:
    """Kill a process and its descendants, as spark-submit's JVM leaves its Python driver behind. Returns the pids."""
    try:
        parent = psutil.Process(pid)
        family = [parent, *parent.children(recursive=True)]  # a parent that sees its child die may end well
    except psutil.NoSuchProcess:
        return []
    killed = []
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
            killed.append(process.pid)
    return killed


def _without_secret(name: str, address: str) -> str:
    from onceover.ledger.database import carries_password  # here, so that loading a DAG does not load psycopg

    if urlsplit(address).password or (name == "ONCEOVER_POSTGRES" and carries_password(address)):
        raise TerminalError(
            f"{name} carries a password, which would show in the command line of the cluster's submission; remove it "
            "and give the driver a PGPASSFILE instead"
        )
    return address
