"""The three tasks, against a double of the library that records its calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from onceover.context import PipelineContext
from onceover.detection import plan as plan_module
from onceover.detection import service as detection_service
from onceover.detection.plan import PlannedRepair, RepairPlan
from onceover.detection.service import Detection, FailedWindow
from onceover.errors import BusyError, TerminalError, UsageError
from onceover.model.dag_run import DagRun
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.window import Window, WindowRange
from onceover.repair import confirmation, range_outcome
from onceover.repair.confirmation import Confirmation
from onceover.repair.range_outcome import RangeOutcome
from onceover_airflow.operators import repair as operators
from onceover_airflow.operators.repair import (
    CheckRangeOperator,
    ConfirmOperator,
    DetectOperator,
    RepairOperator,
    describe_worse,
    parse_request_id,
)

pytestmark = pytest.mark.airflow

DAY = (datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC))


@dataclass(frozen=True)
class Run:
    dag_id: str = "repair_history"
    run_id: str = "backfill__2013-01-02"
    run_type: str = "backfill"
    triggering_user_name: str | None = "ada"
    data_interval_start: datetime | None = DAY[0]
    data_interval_end: datetime | None = DAY[1]


WINDOW = Window.at(datetime(2013, 1, 1, 5, tzinfo=UTC), 60)
DUPLICATED = Finding(Kind.DUPLICATED, {"landings": [1, 2]})


@dataclass
class Library:
    """A double of the services of detection and repair that returns their own result types."""

    request_id: int | None = 7
    failed: tuple[tuple[str, str], ...] = ()
    revoked: tuple[tuple[str, str], ...] = ()
    newly_blocked: tuple[tuple[str, str], ...] = ()
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    runs: list[DagRun] = field(default_factory=list)
    plans: list[str | None] = field(default_factory=list)

    def detect(
        self,
        context: PipelineContext,
        *,
        who: str,
        why: str,
        window_range: WindowRange | None,
        force: bool,
        dag_run: DagRun,
        plan_token: str | None,
        **_: object,
    ) -> Detection:
        pipeline = context.name
        self.runs.append(dag_run)
        self.plans.append(plan_token)
        self.calls.append((pipeline, {"who": who, "why": why, "window_range": window_range, "force": force}))
        failed = (FailedWindow(WINDOW, (DUPLICATED,)),) if self.request_id else ()
        return Detection(pipeline, 24, 3, failed, 0, 0, 1, (Finding(Kind.HOLE, {}),), self.request_id)

    def plan_repair(self, context: PipelineContext, *, window_range: WindowRange, force: bool) -> RepairPlan:
        pipeline = context.name
        self.calls.append((pipeline, {"window_range": window_range, "force": force}))
        return RepairPlan(pipeline, (PlannedRepair(WINDOW, (DUPLICATED,), 1200, 99000, 1150, 1100, 4),), 2)

    def confirm(self, context: PipelineContext, request_id: int) -> Confirmation:
        pipeline = context.name
        self.calls.append((pipeline, {"request_id": request_id}))
        return Confirmation(pipeline, request_id, (), self.revoked, self.failed, self.newly_blocked, (), (), 0, 0)


@pytest.fixture
def library(project: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    stand_in = Library()
    monkeypatch.setattr(detection_service, "detect", stand_in.detect)
    monkeypatch.setattr(plan_module, "plan_repair", stand_in.plan_repair)
    monkeypatch.setattr(confirmation, "confirm", stand_in.confirm)
    return stand_in


def context(params: dict[str, Any] | None = None, run: Run | None = None) -> Context:
    return cast(Context, {"dag_run": run or Run(), "params": params or {}, "ti": SimpleNamespace(map_index=0)})


def detect(scope: operators.Scope = "run", pipeline: str = "events", reason_needed: bool = False) -> DetectOperator:
    return DetectOperator(task_id="detect", pipeline=pipeline, scope=scope, reason_needed=reason_needed)


def test_ledger_detection_names_no_range_and_who_triggered_it(library: Library) -> None:
    scheduled = Run("repair_failed_windows", "scheduled__x", "scheduled", None)

    detect("ledger").execute(context(run=scheduled))

    [(pipeline, asked)] = library.calls
    assert (pipeline, asked["who"], asked["window_range"]) == ("events", "scheduler", None)
    assert asked["why"] == "repair_failed_windows, run scheduled__x"
    assert library.runs == [DagRun("repair_failed_windows", "scheduled__x")]


def test_backfill_judges_the_windows_of_its_day(library: Library) -> None:
    found = detect().execute(context({"force": True}))

    asked = library.calls[0][1]
    assert (len(asked["window_range"]), asked["force"], asked["who"]) == (24, True, "ada (backfill)")
    assert (found["request_id"], found["pipeline"]) == (7, "events")


def test_reason_goes_to_the_ledger_unchanged(library: Library) -> None:
    reason = "disk full'; DROP TABLE onceover.window; -- {{ var.value.secret }}"
    times = {"from": "2013-01-01T05:00Z", "to": "2013-01-01T06:00Z"}

    detect(reason_needed=True).execute(context({"reason": reason, **times}, Run(run_type="manual")))

    assert library.calls[0][1]["why"] == reason


def test_dry_run_only_plans(library: Library) -> None:
    times = {"from": "2013-01-01T05:00Z", "to": "2013-01-01T06:00Z"}

    found = detect(reason_needed=True).execute(context({"dry_run": True, **times}))

    assert [sorted(asked) for _, asked in library.calls] == [["force", "window_range"]]
    assert found["request_id"] is None
    assert (found["plan"][0]["lines"], found["plan"][0]["change"]) == (1200, -50)
    assert (len(found["token"]), found["changing"]) == (64, 2)


@pytest.mark.parametrize("name", ["unknown", "../events", "", "events; ls"])
def test_unknown_pipeline_is_refused_before_any_library_call(library: Library, name: str) -> None:
    with pytest.raises(UsageError):
        detect(pipeline=name).execute(context())

    assert library.calls == []


def test_repair_of_nothing_starts_no_spark(project: Path) -> None:
    repair = RepairOperator(task_id="repair", pipeline="events", detection={"request_id": None})

    with pytest.raises(AirflowSkipException, match="no Spark application was started"):
        repair.execute(context())


def test_missing_detection_is_an_error_and_not_an_empty_one() -> None:
    nothing: tuple[object, ...] = (None, "", {})
    for value in nothing:
        with pytest.raises(TerminalError, match="clear it together"):
            parse_request_id(value)


def test_confirmation_without_a_request_is_skipped(library: Library) -> None:
    with pytest.raises(AirflowSkipException):
        ConfirmOperator(task_id="confirm", pipeline="events", detection={"request_id": None}).execute(context())


def confirm() -> ConfirmOperator:
    return ConfirmOperator(task_id="confirm", pipeline="events", detection={"request_id": 7})


def test_failed_window_that_will_be_retried_is_not_red(library: Library) -> None:
    library.failed = (("2013-01-01T05:00Z", "HDFS did not answer"),)

    confirm().execute(context())

    assert library.calls == [("events", {"request_id": 7})]


@pytest.mark.parametrize("trouble", ["newly_blocked", "revoked"])
def test_worsened_window_is_red_with_its_next_command(library: Library, trouble: str) -> None:
    setattr(library, trouble, (("2013-01-01T05:00Z", "corrupt line"),))

    with pytest.raises(TerminalError, match=r"\(corrupt line\); .*`onceover explain events 2013-01-01T05:00Z`"):
        confirm().execute(context())


def check(detection: dict[str, Any]) -> CheckRangeOperator:
    return CheckRangeOperator(task_id="check", pipeline="events", detection=detection)


RANGE = {"from": "2013-01-01T05:00Z", "to": "2013-01-01T07:00Z"}


@pytest.mark.parametrize(
    ("failed", "pending", "error"),
    [(1, 0, TerminalError), (1, 1, TerminalError), (0, 1, BusyError)],
    ids=["failed", "both", "held by another repair"],
)
def test_check_is_retried_only_while_no_window_has_failed(
    library: Library, monkeypatch: pytest.MonkeyPatch, failed: int, pending: int, error: type[Exception]
) -> None:
    chosen = WindowRange.parse(RANGE["from"], RANGE["to"], 60)
    windows = (("2013-01-01T05:00Z", "raw holds 1 of 2"),), (("2013-01-01T06:00Z", "being repaired by request:9"),)
    outcome = RangeOutcome("events", chosen, windows[0][:failed], windows[1][:pending])
    monkeypatch.setattr(range_outcome, "judge_range", lambda *_: outcome)

    with pytest.raises(error, match="of the requested range"):
        check({"request_id": 7, **RANGE}).execute(context())


def test_newly_blocked_window_of_a_range_is_left_to_its_check(library: Library) -> None:
    library.newly_blocked = (("2013-01-01T05:00Z", "corrupt line"),)

    ConfirmOperator(task_id="confirm", pipeline="events", detection={"request_id": 7, **RANGE}).execute(context())

    assert library.calls == [("events", {"request_id": 7})]


def test_check_of_a_dry_run_is_skipped(project: Path) -> None:
    with pytest.raises(AirflowSkipException, match="dry run"):
        check({"request_id": None}).execute(context())


def test_long_error_stays_one_line() -> None:
    said = describe_worse("events", (), [(f"w{i}", "") for i in range(700)])

    assert said is not None
    assert "700 newly blocked" in said
    assert "and 695 more" in said
    assert "\n" not in said
