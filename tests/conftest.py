"""The tiers' order, and the embedded stack that all tests of one session share: real parts, a folder of its own."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import HealthCheck, settings
from tests.airflow_users import read_password
from tests.own_stack import ROOT, embedded

from onceover.config import endpoints
from onceover_local.airflow_rest import AirflowRest
from onceover_local.stack import Stack

# A shell starts what it runs in the background with SIGINT ignored, and every child of ours would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Ten records need no optimizing compiler: with its first tier alone a cold Spark costs half of the processors' time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
# How long one example takes depends on the machine, which may pause for a second, and not on the code.
settings.register_profile("onceover", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("onceover")
logging.getLogger("py4j").setLevel(logging.WARNING)  # it says goodbye when the log it was given is closed already
TIERS = ("spark", "stack", "airflow", "faults")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fastest tier first, under any file names; a test belongs to the slowest tier it is marked with. The largest are
    rare, too."""
    for item in items:
        if item.get_closest_marker("largest"):
            item.add_marker("rare")
    items.sort(
        key=lambda item: max((TIERS.index(tier) + 1 for tier in TIERS if item.get_closest_marker(tier)), default=0)
    )


def pytest_unconfigure() -> None:
    gc.unfreeze()  # tests run tasks in this process, which freeze what is loaded; DuckDB would report that as leaked


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Report the ten files that took longest, and how much of the time started servers and sessions."""
    all_of: defaultdict[str, float] = defaultdict(float)
    preparing: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                all_of[file] += report.duration
                preparing[file] += report.duration if report.when == "setup" else 0
    for file, seconds in sorted(all_of.items(), key=lambda each: -each[1])[:10]:
        if seconds >= 1:
            terminalreporter.write_line(f"{seconds:5.0f} s, {preparing[file]:3.0f} s of them setup: {file}")


def pause_when_all_have_ended(airflow: AirflowRest, dag: str) -> None:
    """A run that the schedule has only just queued would wait under a paused DAG for ever."""
    while True:
        for run in airflow.runs(dag):
            airflow.wait_for_run(dag, run["dag_run_id"], 300)
        airflow.pause(dag, True)
        if all(run["state"] in ("success", "failed") for run in airflow.runs(dag)):
            return
        airflow.pause(dag, False)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """Kafka, HDFS and PostgreSQL, empty at the session's start."""
    with embedded() as found:
        yield found


@pytest.fixture(scope="session")
def registry(stack: Stack) -> str:
    """The URL of the schema registry on that stack; `stack.stop_part("registry")` and the like end it alone."""
    stack.up({"registry"})
    return endpoints.address("registry")


@pytest.fixture(scope="session")
def lineage_file(stack: Stack) -> Iterator[Path]:
    """The file to which this session's Airflow reports repairs, and nothing else, by OpenLineage's file transport."""
    file = stack.local / "lineage.jsonl"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    repairs = "onceover_airflow.operators.repair.RepairOperator"
    policy = [{"scope": {}, "controls": {"emit": False}}, {"scope": {"operator": repairs}, "controls": {"emit": True}}]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
        environment.setenv("AIRFLOW__OPENLINEAGE__EMISSION_POLICY", json.dumps(policy))
        # After ten seconds, its default, the provider gives an event up: a busy machine may take longer.
        environment.setenv("AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT", "60")
        yield file


@pytest.fixture(scope="session")
def airflow(stack: Stack, request: pytest.FixtureRequest) -> Iterator[AirflowRest]:
    """Airflow's four processes on that stack, and its REST API as admin. `repair_failed_windows` is paused, so that
    its schedule starts nothing in between; a test that wants it to run lifts that. None of its runs is under way: of a
    task whose scheduler a test kills, Airflow says for five minutes that it is running, and no other run begins."""
    # Each task begins a second later with it, so it is there in a session only that has a test of it.
    if any("lineage_file" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("lineage_file")
    stack.up({"airflow"})
    password = read_password(stack, "admin")
    rest = AirflowRest(endpoints.address("airflow"), "admin", password)
    try:
        for dag in sorted((ROOT / "dags").glob("*.py")):
            rest.wait_for_dag(dag.stem, 180)
        pause_when_all_have_ended(rest, "repair_failed_windows")
        yield rest
    finally:
        rest.close()
