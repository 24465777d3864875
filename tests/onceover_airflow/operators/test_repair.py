"""The three tasks, against a double of the library that records its calls."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.context import OutletEventAccessors
from tests.dags.doubles import AirflowRun, Library

from onceover.errors import BusyError, TerminalError, UsageError
from onceover.model.dag_run import DagRun
from onceover_airflow.assets import DUE_ALIAS
from onceover_airflow.operators import repair as operators
from onceover_airflow.operators.repair import (
    CheckRangeOperator,
    ConfirmOperator,
    DetectOperator,
    NeededOperator,
    RepairOperator,
    describe_worse,
    parse_request_id,
)

pytestmark = pytest.mark.airflow

BACKFILL = AirflowRun(run_type="backfill")
RANGE = {"from": "2013-01-01T05:00Z", "to": "2013-01-01T07:00Z"}
DAMAGED = (("2013-01-01T05:00Z", "corrupt line"),)


@pytest.fixture
def library(project: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    return Library({"events": 7}).patch(monkeypatch)


def context(params: dict[str, Any] | None = None, run: AirflowRun = BACKFILL) -> Context:
    given = {"dag_run": run, "params": params or {}, "ti": SimpleNamespace(map_index=0)}
    return cast(Context, {**given, "outlet_events": OutletEventAccessors()})


def detect(scope: operators.Scope = "run", pipeline: str = "events", reason_needed: bool = False) -> DetectOperator:
    return DetectOperator(task_id="detect", pipeline=pipeline, scope=scope, reason_needed=reason_needed)


def test_ledger_detection_names_no_range_and_who_triggered_it(library: Library) -> None:
    detect("ledger").execute(context(run=AirflowRun("repair_failed_windows", "scheduled__x", "scheduled", None)))

    asked = library.detected["events"]
    assert (asked["who"], asked["window_range"]) == ("scheduler", None)
    assert asked["why"] == "repair_failed_windows, run scheduled__x"
    assert asked["dag_run"] == DagRun("repair_failed_windows", "scheduled__x")


def test_reason_and_force_go_to_the_ledger_unchanged(library: Library) -> None:
    reason = "disk full'; DROP TABLE onceover.window; -- {{ var.value.secret }}"

    found = detect(reason_needed=True).execute(context({"reason": reason, "force": True, **RANGE}))

    asked = library.detected["events"]
    assert (asked["why"], asked["force"], asked["who"]) == (reason, True, "ada (backfill)")
    assert (found["request_id"], found["pipeline"]) == (7, "events")


def test_dry_run_only_plans(library: Library) -> None:
    found = detect(reason_needed=True).execute(context({"dry_run": True, **RANGE}))

    assert (library.planned, library.detected) == (["events"], {})
    assert found["request_id"] is None
    assert (found["plan"][0]["lines"], found["plan"][0]["change"]) == (1200, -50)
    assert (len(found["token"]), found["changing"]) == (64, 2)


@pytest.mark.parametrize("name", ["unknown", "../events", "", "events; ls"])
def test_unknown_pipeline_is_refused_before_any_library_call(library: Library, name: str) -> None:
    with pytest.raises(UsageError):
        detect(pipeline=name).execute(context())

    assert library.detected == {}


def test_missing_detection_is_an_error_and_not_an_empty_one() -> None:
    nothing: tuple[object, ...] = (None, "", {})
    for value in nothing:
        with pytest.raises(TerminalError, match="clear it together"):
            parse_request_id(value)


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        (NeededOperator, "no repair of events was requested"),
        (RepairOperator, "no repair of events was requested"),
        (ConfirmOperator, "no repair of events was requested"),
        (CheckRangeOperator, "dry run"),
    ],
)
def test_task_without_a_request_is_skipped(library: Library, operator: Any, said: str) -> None:
    with pytest.raises(AirflowSkipException, match=said):
        operator(task_id="task", pipeline="events", detection={"request_id": None}).execute(context())


def confirm(**asked: str) -> dict[str, Any]:
    operator = ConfirmOperator(task_id="confirm", pipeline="events", detection={"request_id": 7, **asked})
    return operator.execute(context())


@pytest.mark.parametrize(("outcome", "asked"), [("failed", {}), ("newly_blocked", RANGE)])
def test_window_that_a_retry_or_a_check_judges_is_not_red(
    library: Library, outcome: str, asked: dict[str, str]
) -> None:
    library.outcome = {outcome: DAMAGED}

    confirm(**asked)

    assert library.confirmed == [("events", 7)]


@pytest.mark.parametrize(("due", "events"), [((), 0), (("events",), 1)])
def test_days_that_are_due_are_announced_at_once(library: Library, due: tuple[str, ...], events: int) -> None:
    library.due = due
    tasks = (detect("ledger"), ConfirmOperator(task_id="confirm", pipeline="events", detection={"request_id": 7}))

    for task in tasks:
        given = context()
        task.execute(given)
        assert task.outlets == [DUE_ALIAS]
        assert len(given["outlet_events"][DUE_ALIAS].asset_alias_events) == events


@pytest.mark.parametrize("trouble", ["newly_blocked", "revoked"])
def test_worsened_window_is_red_with_its_next_command(library: Library, trouble: str) -> None:
    library.outcome = {trouble: DAMAGED}

    with pytest.raises(TerminalError, match=r"\(corrupt line\); .*`onceover explain events 2013-01-01T05:00Z`"):
        confirm()


@pytest.mark.parametrize(
    ("failed", "pending", "error"),
    [(1, 0, TerminalError), (1, 1, TerminalError), (0, 1, BusyError)],
    ids=["failed", "both", "held by another repair"],
)
def test_check_is_retried_only_while_no_window_has_failed(
    library: Library, failed: int, pending: int, error: type[Exception]
) -> None:
    library.wrong = (("2013-01-01T05:00Z", "raw holds 1 of 2"),)[:failed]
    library.pending = (("2013-01-01T06:00Z", "being repaired by request:9"),)[:pending]

    with pytest.raises(error, match="of the requested range"):
        CheckRangeOperator(task_id="check", pipeline="events", detection={"request_id": 7, **RANGE}).execute(context())


def test_long_error_stays_one_line() -> None:
    said = describe_worse("events", (), [(f"w{i}", "") for i in range(700)])

    assert said is not None
    assert "700 newly blocked" in said
    assert "and 695 more" in said
    assert "\n" not in said
