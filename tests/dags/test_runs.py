"""The DAGs run as wired, with doubles of the library and of spark-submit that record their calls."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from tests.programs import write_python_program

from onceover.audit import service as audit_service
from onceover.context import PipelineContext
from onceover.detection import service as detection_service
from onceover.detection import sweep
from onceover.detection.service import Detection, FailedWindow, PlannedRepair
from onceover.detection.sweep import SweepResult
from onceover.errors import TerminalError
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.window import Window, WindowRange
from onceover.repair import service as repair_service
from onceover.repair.service import Confirmation
from onceover.retention import rollup
from onceover.retention import service as retention_service
from onceover.retention.rollup import RollupResult
from onceover.retention.service import ExpiryDue, ExpiryResult

# Airflow starts its own API inside this process, and its libraries warn each other there.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("default")]

WINDOW = Window.at(datetime(2013, 1, 1, 5, tzinfo=UTC), 60)
TIMES = {"from": "2013-01-01T05:00Z", "to": "2013-01-01T07:00Z"}


@dataclass
class Library:
    """A double of the services of detection and repair that returns their own result types."""

    requests: dict[str, int] = field(default_factory=dict)
    blocked: tuple[tuple[str, str], ...] = ()
    detected: dict[str, dict[str, Any]] = field(default_factory=dict)
    confirmed: list[tuple[str, int]] = field(default_factory=list)

    def detect(
        self, context: PipelineContext, *, who: str, why: str, window_range: WindowRange | None, force: bool
    ) -> Detection:
        pipeline = context.name
        self.detected[pipeline] = {"who": who, "why": why, "window_range": window_range}
        request = self.requests.get(pipeline)
        failed = (FailedWindow(WINDOW, (Finding(Kind.DUPLICATED),)),) if request else ()
        return Detection(pipeline, 24, 0, failed, 0, 0, 0, (), request)

    def plan_repair(
        self, context: PipelineContext, *, window_range: WindowRange, force: bool
    ) -> tuple[PlannedRepair, ...]:
        return tuple(PlannedRepair(window, (), 1200, 99000, 1150, None) for window in window_range)

    def confirm(self, context: PipelineContext, request_id: int) -> Confirmation:
        pipeline = context.name
        self.confirmed.append((pipeline, request_id))
        return Confirmation(pipeline, request_id, (str(WINDOW),), (), (), self.blocked, (), (), 0, 0)


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's own tables in the throwaway home."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def library(database: None, home: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    stand_in = Library()
    for name in ("detect", "plan_repair"):
        monkeypatch.setattr(detection_service, name, getattr(stand_in, name))
    monkeypatch.setattr(repair_service, "confirm", stand_in.confirm)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[*]"}')
    return stand_in


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that holds one line for each spark-submit."""
    submitted = tmp_path / "submitted"
    write_python_program(
        tmp_path / "spark-submit",
        f"""
        import sys
        with open({str(submitted)!r}, "a") as file:
            print(*sys.argv[-5:], file=file)
        """,
    )
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return submitted


def run(
    bag: DagBag, dag_id: str, conf: dict[str, Any] | None = None, logical_date: datetime | None = None
) -> tuple[str, dict[str, str]]:
    """State of a run, and of each task in it."""
    done = bag.dags[dag_id].test(run_conf=conf, logical_date=logical_date)
    states = {
        ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]": str(ti.state)
        for ti in done.get_task_instances()
    }
    return str(done.state), states


def test_nothing_failed_starts_no_spark(dag_bag: DagBag, library: Library, spark: Path) -> None:
    state, tasks = run(dag_bag, "repair_failed_windows")

    assert state == "success"
    assert set(library.detected) == {"events", "orders"}
    assert {name: kept for name, kept in tasks.items() if "repair" in name} == {
        "windows.repair[0]": "skipped",
        "windows.repair[1]": "skipped",
    }
    assert not spark.exists()


def test_failed_window_of_one_pipeline_is_one_application(
    dag_bag: DagBag, library: Library, spark: Path, home: Path
) -> None:
    library.requests = {"orders": 12}

    state, tasks = run(dag_bag, "repair_failed_windows")

    assert state == "success"
    assert spark.read_text().splitlines() == [f"{home}/jobs/repair.py --pipeline orders --request 12"]
    assert library.confirmed == [("orders", 12)]
    assert (tasks["windows.confirm[0]"], tasks["windows.confirm[1]"]) == ("skipped", "success")


def test_newly_blocked_window_turns_the_run_red_at_once(dag_bag: DagBag, library: Library, spark: Path) -> None:
    library.requests, library.blocked = {"orders": 12}, ((str(WINDOW), "corrupt line"),)

    state, tasks = run(dag_bag, "repair_failed_windows")

    assert state == "failed"
    assert tasks["windows.confirm[1]"] == "failed"
    assert library.confirmed == [("orders", 12)]


def test_day_of_history_is_judged_for_the_chosen_pipeline_only(dag_bag: DagBag, library: Library, spark: Path) -> None:
    state, _ = run(
        dag_bag, "repair_history", logical_date=datetime(2013, 1, 3, tzinfo=UTC), conf={"pipeline": "events"}
    )

    assert state == "success"
    [(pipeline, asked)] = library.detected.items()
    days = asked["window_range"]
    assert (pipeline, days.start, len(days)) == ("events", datetime(2013, 1, 2, tzinfo=UTC), 24)


def test_history_without_a_pipeline_fails_instead_of_taking_all(dag_bag: DagBag, library: Library, spark: Path) -> None:
    state, tasks = run(dag_bag, "repair_history", logical_date=datetime(2013, 1, 4, tzinfo=UTC))

    assert (state, tasks["choose"]) == ("failed", "failed")
    assert library.detected == {}


def test_on_call_repairs_the_range_and_keeps_the_reason(dag_bag: DagBag, library: Library, spark: Path) -> None:
    library.requests = {"events": 3}

    state, _ = run(dag_bag, "repair_on_call", conf={"pipeline": "events", "reason": "disk full", **TIMES})

    assert state == "success"
    asked = library.detected["events"]
    assert (asked["why"], [str(window) for window in asked["window_range"]]) == (
        "disk full",
        ["2013-01-01T05:00Z", "2013-01-01T06:00Z"],
    )
    assert spark.read_text().splitlines()[0].endswith("--pipeline events --request 3")


def test_on_call_dry_run_writes_nothing(dag_bag: DagBag, library: Library, spark: Path) -> None:
    state, tasks = run(dag_bag, "repair_on_call", conf={"pipeline": "events", "dry_run": True, **TIMES})

    assert (state, tasks["windows.repair"]) == ("success", "skipped")
    assert library.detected == {}
    assert not spark.exists()


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({**TIMES}, "a repair needs a reason"),
        ({**TIMES, "to": "2013-01-01T05:00Z", "reason": "x"}, "empty or reversed"),
        ({**TIMES, "from": "2013-01-01T05:01Z", "reason": "x"}, "is not the start of a window"),
        ({**TIMES, "to": "2999-01-01T00:00Z", "reason": "x"}, "in the future"),
    ],
)
def test_on_call_refuses_a_malformed_request(
    dag_bag: DagBag, library: Library, spark: Path, capfd: pytest.CaptureFixture[str], conf: dict[str, Any], said: str
) -> None:
    state, tasks = run(dag_bag, "repair_on_call", conf={"pipeline": "events", **conf})

    assert (state, tasks["windows.detect"]) == ("failed", "failed")
    assert said in "".join(capfd.readouterr())
    assert library.detected == {}
    assert not spark.exists()


def test_sweep_of_one_pipeline_fails_without_delaying_the_other(
    dag_bag: DagBag, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep_pipeline(context: PipelineContext, *, say: sweep.Say) -> SweepResult:
        if context.name == "events":
            raise TerminalError("its TOML is wrong")
        return SweepResult(context.name, 24, (), 0)

    seeds: list[str] = []
    monkeypatch.setattr(sweep, "sweep_pipeline", sweep_pipeline)
    monkeypatch.setattr(audit_service, "request_sample", lambda context, seed, who: seeds.append(seed))

    state, tasks = run(dag_bag, "sweep_certified")

    assert state == "failed"
    assert (tasks["sweep[0]"], tasks["sweep[1]"]) == ("failed", "success")
    assert (tasks["verify[0]"], tasks["verify[1]"]) == ("skipped", "skipped"), "neither has a certified window"
    assert len(seeds) == 2
    assert len(set(seeds)) == 1, "the run's name chooses, so that a cleared task verifies the same window"


@pytest.mark.parametrize("differences", [[], ["aggregates: 2 rows differ from what raw says: + (a,5,10,4)"]])
def test_sweep_verifies_one_window_and_is_red_for_a_difference(
    dag_bag: DagBag,
    library: Library,
    spark: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    differences: list[str],
) -> None:
    sides = {side: {"records": 5, "digest": "00"} for side in ("certificate", "raw", "aggregates")}
    result = {"equal": not differences, "differences": differences, **sides}
    chosen = {"events": 31}
    monkeypatch.setattr(sweep, "sweep_pipeline", lambda context, say: SweepResult(context.name, 24, (), 0))
    monkeypatch.setattr(audit_service, "request_sample", lambda context, seed, who: chosen.get(context.name))
    monkeypatch.setattr(audit_service, "read_sample", lambda context, audit_id: (WINDOW.start, result))

    state, tasks = run(dag_bag, "sweep_certified")

    said = "events: window 2013-01-01T05:00Z is not as certified: aggregates: 2 rows differ"
    expected = ("failed", True) if differences else ("success", False)
    assert (state, said in "".join(capfd.readouterr())) == expected
    assert (tasks["verify[0]"], tasks["verify[1]"]) == (state, "skipped")
    assert spark.read_text().splitlines() == [f"{home}/jobs/audit.py --pipeline events --audit 31"]


def test_retention_of_one_pipeline_fails_without_delaying_others(
    dag_bag: DagBag, library: Library, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    went: list[tuple[str, str, str]] = []

    def expire(
        context: PipelineContext, listed: ExpiryDue, who: str, why: str, say: retention_service.Say
    ) -> ExpiryResult:
        went.append((context.name, who, why))
        return ExpiryResult(0, 0)

    monkeypatch.setattr(retention_service, "plan_expiry", lambda context: ExpiryDue(context.name, 1, (), 0))
    monkeypatch.setattr(retention_service, "expire", expire)
    joined: list[tuple[str, bool]] = []

    def roll_up_batches(context: PipelineContext, *, dry_run: bool) -> RollupResult:
        joined.append((context.name, dry_run))
        return RollupResult(context.name, 720, 1, 0, 0)

    monkeypatch.setattr(rollup, "roll_up_batches", roll_up_batches)
    monkeypatch.setattr(PipelineContext, "is_registered", lambda context: True)
    toml = home / "pipelines" / "orders.toml"
    before = toml.read_text()
    (home / "pipelines" / "broken.toml").write_text("[contract")
    try:
        toml.write_text(before + '\n[storage]\nretention = "30d"\n')
        state, tasks = run(dag_bag, "expire_raw", conf={"reason": "room"})
    finally:
        toml.write_text(before)
        (home / "pipelines" / "broken.toml").unlink()

    assert (state, tasks) == (
        "failed",
        {
            "pipelines": "success",
            **{f"{task}[{n}]": "success" if n else "failed" for task in ("expire", "roll_up") for n in range(3)},
        },
    )
    assert [(name, why) for name, _, why in went] == [("orders", "room")]
    assert sorted(joined) == [("events", False), ("orders", False)]
