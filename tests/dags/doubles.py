"""A double of the library's services that records their calls, and a DAG's run as wired."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from onceover.context import PipelineContext
from onceover.detection.plan import PlannedRepair, RepairPlan
from onceover.detection.service import Detection, FailedWindow
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.window import Window, WindowRange
from onceover.repair.confirmation import Confirmation
from onceover.repair.range_outcome import RangeOutcome

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

WINDOW = Window.at(datetime(2013, 1, 1, 5, tzinfo=UTC), 60)


@dataclass
class Library:
    """A double of the services of detection and repair that returns their own result types."""

    requests: dict[str, int] = field(default_factory=dict)
    blocked: tuple[tuple[str, str], ...] = ()
    detected: dict[str, dict[str, Any]] = field(default_factory=dict)
    confirmed: list[tuple[str, int]] = field(default_factory=list)
    wrong: tuple[tuple[str, str], ...] = ()

    def detect(
        self,
        context: PipelineContext,
        *,
        who: str,
        why: str,
        window_range: WindowRange | None,
        force: bool,
        **_: object,
    ) -> Detection:
        pipeline = context.name
        self.detected[pipeline] = {"who": who, "why": why, "window_range": window_range}
        request = self.requests.get(pipeline)
        failed = (FailedWindow(WINDOW, (Finding(Kind.DUPLICATED),)),) if request else ()
        return Detection(pipeline, 24, 0, failed, 0, 0, 0, (), request)

    def plan_repair(self, context: PipelineContext, *, window_range: WindowRange, force: bool) -> RepairPlan:
        planned = tuple(PlannedRepair(window, (), 1200, 99000, 1150, None, 7) for window in window_range)
        return RepairPlan(context.name, planned)

    def confirm(self, context: PipelineContext, request_id: int) -> Confirmation:
        pipeline = context.name
        self.confirmed.append((pipeline, request_id))
        return Confirmation(pipeline, request_id, (str(WINDOW),), (), (), self.blocked, (), (), 0, 0)

    def judge_range(
        self, context: PipelineContext, window_range: WindowRange, confirmation: Confirmation | None
    ) -> RangeOutcome:
        return RangeOutcome(context.name, window_range, self.wrong)


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
