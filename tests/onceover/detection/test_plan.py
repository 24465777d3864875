"""The plan's token, and the refusal of a repair whose plan has changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from onceover.context import PipelineContext
from onceover.detection import plan
from onceover.detection.plan import PlannedRepair, RepairPlan
from onceover.errors import ChangedPlanError
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.window import WindowRange
from onceover.model.windowing import Windowing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def planned(hour: int, *kinds: Kind, version: int = 7) -> PlannedRepair:
    findings = tuple(map(Finding, kinds))
    return PlannedRepair(Windowing(60).window_at(NOON + hour * HOUR), findings, 60, 5944, 60, 30, version)


PLAN = RepairPlan("things", (planned(0, Kind.DUPLICATED), planned(1, Kind.LATE, Kind.AGGREGATE_MISMATCH)))


def test_token_is_of_windows_versions_and_kinds_alone() -> None:
    first, second = PLAN.windows
    same = RepairPlan("things", (planned(1, Kind.AGGREGATE_MISMATCH, Kind.LATE), replace(first, lines=99)), changing=3)
    assert same.token == PLAN.token
    others = [
        RepairPlan("others", PLAN.windows),
        RepairPlan("things", (first,)),
        RepairPlan("things", (first, replace(second, version=8))),
        RepairPlan("things", (first, replace(second, findings=first.findings))),
    ]
    assert len({PLAN.token, *(other.token for other in others)}) == len(others) + 1


def test_other_windows_than_planned_are_refused_by_name() -> None:
    PLAN.require_windows([NOON + HOUR, NOON])
    with pytest.raises(ChangedPlanError, match=r"changed since you looked: now also 2026-03-01T14:00Z; no longer 2026"):
        PLAN.require_windows([NOON, NOON + 2 * HOUR])


@pytest.mark.parametrize("token", [PLAN.token, f" {PLAN.token} "])
def test_plan_of_its_token_is_returned(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    assert require(monkeypatch, PLAN, token) == PLAN


def test_plan_of_another_token_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChangedPlanError, match=r"2 windows now: 2026-03-01T12:00Z \(duplicated\), 2026-03-01T13:00Z"):
        require(monkeypatch, PLAN, "0" * 64)


def test_plan_without_windows_is_never_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the repair that was looked at, when its run is cleared."""
    assert require(monkeypatch, RepairPlan("things", ()), PLAN.token).windows == ()


def require(monkeypatch: pytest.MonkeyPatch, now: RepairPlan, token: str) -> RepairPlan:
    monkeypatch.setattr(plan, "plan_repair", lambda context, **how: now)
    hours = WindowRange(NOON, NOON + 2 * HOUR)
    return plan.require_plan(cast(PipelineContext, None), hours, token, force=False)


def test_plan_sums_up_what_is_known() -> None:
    summed = RepairPlan("things", (planned(0, Kind.MISSING_FILE), replace(planned(1, Kind.LATE), distinct=None)))

    assert summed.as_dict()["totals"] == {
        "windows": 2,
        "lines": 120,
        "bytes": 11_888,
        "change": -30,
        "unknown_changes": 1,
        "missing_files": 1,
    }
