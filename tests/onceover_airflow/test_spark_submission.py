"""The repair's Spark application: its command, its environment, its end, and its death."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException
from tests.programs import write_python_program

from onceover.config.airflow import build_master
from onceover.errors import ConfigurationError, TerminalError, TransientError
from onceover_airflow.operators.repair import RepairOperator
from onceover_airflow.spark import driver_environment, kill_family, meaning_of_exit
from onceover_local.stack.process import wait_for

pytestmark = pytest.mark.airflow

LOCAL = '{"conn_type": "spark", "host": "local[*]"}'


def repair(pipeline: str = "events") -> RepairOperator:
    return RepairOperator(task_id="repair", pipeline=pipeline, detection={"request_id": 12})


def test_command_is_a_list_of_strings_without_addresses(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", LOCAL)
    monkeypatch.setenv("ONCEOVER_POSTGRES", "postgresql://ada:hush@db/onceover")
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    operator = repair()

    operator.set_command("request", 12)
    hook = operator._get_hook()
    command = hook._build_spark_submit_command(operator.application)

    assert command[:3] == ["spark-submit", "--master", "local[*]"]
    assert command[-5:] == [str(project / "jobs" / "repair.py"), "--pipeline", "events", "--request", "12"]
    assert "hush" not in " ".join(command)
    assert "hush" not in str(operator.env_vars)
    assert "-XX:TieredStopAtLevel=1" in str(operator.env_vars), "a repair is brief"


def test_unknown_connection_is_refused_instead_of_meaning_yarn(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)

    with pytest.raises(ConfigurationError, match="airflow connections add no_such_spark"):
        RepairOperator(task_id="repair", pipeline="events", detection={}, conn_id="no_such_spark").set_command(
            "request", 12
        )


def test_local_driver_runs_this_python_and_its_own_spark_submit() -> None:
    given = driver_environment(Connection(conn_id="s", conn_type="spark", host="local[2]"), {"PATH": "/bin"})

    assert given["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert "TieredStopAtLevel" not in given.get("SPARK_SUBMIT_OPTS", ""), "an audit's takes hours"
    assert given["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/bin"]


ADDRESSES = {"ONCEOVER_KAFKA": "k:9092", "ONCEOVER_POSTGRES": "postgresql://ada@db/onceover",
             "ONCEOVER_REGISTRY": "https://registry"}  # fmt: skip
WITH_PASSWORD = {"ONCEOVER_POSTGRES": "postgresql://ada:hush@db/onceover"}


def connect(host: str, mode: str) -> Connection:
    return Connection(conn_id="s", conn_type="spark", host=host, extra=json.dumps({"deploy-mode": mode}))


@pytest.mark.parametrize("host", ["yarn", "k8s://https://cluster:6443"])
def test_driver_elsewhere_gets_addresses_but_no_password(host: str) -> None:
    assert driver_environment(connect(host, "cluster"), {**ADDRESSES, "HOME": "/"}) == ADDRESSES
    with pytest.raises(TerminalError, match="ONCEOVER_POSTGRES carries a password") as refused:
        driver_environment(connect(host, "cluster"), WITH_PASSWORD)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("host", ["yarn", "k8s://https://cluster:6443"])
def test_driver_here_shows_a_cluster_paths_alone(host: str) -> None:
    options = {"SPARK_SUBMIT_OPTS": "-Djavax.net.ssl.trustStorePassword=hush"}
    given = driver_environment(connect(host, "client"), {**WITH_PASSWORD, **options, "PATH": "/bin"}, is_brief=True)
    assert given["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert given.keys() == {"PYSPARK_DRIVER_PYTHON", "PATH"}


@pytest.mark.parametrize(
    ("connection", "master"),
    [
        (Connection(conn_id="s", conn_type="spark", host="local[*]"), "local[*]"),
        (Connection(conn_id="s", conn_type="spark", host="spark://m", port=7077), "spark://m:7077"),
        (Connection(conn_id="s", conn_type="spark", host="m", port=7077), "spark://m:7077"),
        (Connection(conn_id="s", conn_type="spark", host="yarn"), "yarn"),
    ],
)
def test_master_is_read_as_the_provider_reads_it(
    connection: Connection, master: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", connection.as_json())

    assert build_master(connection.conn_type, connection.host, connection.port) == master
    assert repair()._get_hook()._connection["master"] == master


def test_exit_code_of_a_transient_error_alone_is_retried() -> None:
    assert isinstance(meaning_of_exit(75, "it"), TransientError)
    assert isinstance(meaning_of_exit(78, "it"), TerminalError)
    assert isinstance(meaning_of_exit(2, "it"), TerminalError)
    assert meaning_of_exit(1, "it") is None
    assert meaning_of_exit(None, "it") is None


@pytest.fixture
def submitted(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spark-submit that starts a child as the JVM starts the driver, writes both pids and ends as set."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", LOCAL)
    binaries = project / "bin"
    binaries.mkdir()
    write_python_program(
        binaries / "spark-submit",
        f"""
        import os, subprocess, sys, pathlib
        here = pathlib.Path({str(project)!r})
        code = os.environ.get("FAKE_EXIT")
        if code is not None:
            print("the last line")
            sys.exit(int(code))
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        (here / "pids.part").write_text(f"{{os.getpid()}} {{child.pid}}")
        (here / "pids.part").rename(here / "pids")
        child.wait()
        """,
    )
    monkeypatch.setattr(sys, "executable", str(binaries / "python"))
    return project


@pytest.mark.parametrize(("code", "error"), [("75", TransientError), ("78", TerminalError)])
def test_exit_code_decides_the_error(
    submitted: Path, monkeypatch: pytest.MonkeyPatch, code: str, error: type[Exception]
) -> None:
    monkeypatch.setenv("FAKE_EXIT", code)

    with pytest.raises(error, match="repair of events, request 12"):
        repair().execute({})


def test_killing_the_task_kills_the_driver_too(submitted: Path) -> None:
    operator = repair()

    def until_killed() -> None:
        with pytest.raises(AirflowException, match="Error code is: -9"):
            operator.execute({})

    task = threading.Thread(target=until_killed, daemon=True)
    task.start()
    wait_for((submitted / "pids").exists, 20, "the submission")
    pids = [int(pid) for pid in (submitted / "pids").read_text().split()]

    operator.on_kill()
    task.join(10)

    assert not task.is_alive()
    assert gone(pids)


def test_kill_before_the_submission_does_nothing() -> None:
    repair().on_kill()


def test_kill_of_an_ended_process_does_nothing() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()

    assert kill_family(done.pid) == []


def test_parent_is_killed_before_its_child(submitted: Path) -> None:
    """One that saw its child die might end as if all were well."""
    parent = subprocess.Popen([sys.executable.replace("python", "spark-submit")])
    wait_for((submitted / "pids").exists, 20, "the child")
    pids = [int(pid) for pid in (submitted / "pids").read_text().split()]

    assert kill_family(parent.pid) == pids
    assert parent.wait() == -9
    assert gone(pids)


def gone(pids: list[int]) -> bool:
    """Whether the processes have ended; one whose new parent has not collected it yet has ended too."""
    alive = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, left = psutil.wait_procs(alive, timeout=10)
    return all(process.status() == psutil.STATUS_ZOMBIE for process in left)
