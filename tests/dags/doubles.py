"""A double of the library's services that records their calls, and a DAG's run as wired."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from onceover import context as context_module
from onceover.context import PipelineContext
from onceover.detection import detect as detecting
from onceover.detection import plan as plan_module
from onceover.detection.detect import Detection, FailedWindow
from onceover.detection.plan import PlannedRepair, RepairPlan
from onceover.errors import UnreachableError
from onceover.ledger import announcements
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.window import WindowRange, from_ms
from onceover.model.windowing import Windowing
from onceover.repair import confirmation, range_outcome
from onceover.repair.confirmation import Confirmation
from onceover.repair.range_outcome import RangeOutcome

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

WINDOW = Windowing(60).window_at(datetime(2013, 1, 1, 5, tzinfo=UTC))


DUPLICATED = Finding(Kind.DUPLICATED, {"landings": [1, 2]})


@dataclass(frozen=True)
class AirflowRun:
    """What an operator reads of Airflow's own run."""

    dag_id: str = "a_dag"
    run_id: str = "manual__1"
    run_type: str = "manual"
    triggering_user_name: str | None = "ada"
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None


class SilentLedger:
    """A double of a connection to a ledger that does not answer."""

    def execute(self, *_: object) -> None:
        raise UnreachableError("the ledger does not answer")


@dataclass
class Library:
    """A double of the services of detection and repair that returns their own result types. `outcome` has the fields
    of a confirmation that differ from an empty one; of pipelines that are `due`, days wait to be announced."""

    requests: dict[str, int] = field(default_factory=dict)
    outcome: dict[str, Any] = field(default_factory=dict)
    detected: dict[str, dict[str, Any]] = field(default_factory=dict)
    planned: list[str] = field(default_factory=list)
    confirmed: list[tuple[str, int]] = field(default_factory=list)
    wrong: tuple[tuple[str, str], ...] = ()
    pending: tuple[tuple[str, str], ...] = ()
    due: tuple[str, ...] = ()

    def detect(self, context: PipelineContext, **asked: Any) -> Detection:
        self.detected[context.name] = asked
        request = self.requests.get(context.name)
        failed = (FailedWindow(WINDOW, (DUPLICATED,)),) if request else ()
        return Detection(context.name, 24, 3, failed, 0, 0, 1, (Finding(Kind.HOLE, {}),), request)

    def plan_repair(self, context: PipelineContext, *, window_range: WindowRange, force: bool) -> RepairPlan:
        self.planned.append(context.name)
        planned = tuple(
            PlannedRepair(Windowing(60).window_at(from_ms(each)), (DUPLICATED,), 1200, 99000, 1150, 1100, 4)
            for each in Windowing(60).list_starts(window_range.start, window_range.end)
        )
        return RepairPlan(context.name, planned, 2)

    def confirm(self, context: PipelineContext, request_id: int) -> Confirmation:
        self.confirmed.append((context.name, request_id))
        return replace(Confirmation(context.name, request_id, (), (), (), (), (), (), 0, 0), **self.outcome)

    def judge_range(
        self, context: PipelineContext, window_range: WindowRange, confirmation: Confirmation | None
    ) -> RangeOutcome:
        return RangeOutcome(context.name, window_range, self.wrong, self.pending)

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> Library:
        """Put the double in the library's place for a test."""
        monkeypatch.setattr(detecting, "detect", self.detect)
        monkeypatch.setattr(plan_module, "plan_repair", self.plan_repair)
        monkeypatch.setattr(confirmation, "confirm", self.confirm)
        monkeypatch.setattr(range_outcome, "judge_range", self.judge_range)
        monkeypatch.setattr(context_module, "open_ledger", lambda purpose: nullcontext(SilentLedger()))
        monkeypatch.setattr(announcements, "is_due", lambda ledger, pipelines: bool({*pipelines} & {*self.due}))
        return self


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
