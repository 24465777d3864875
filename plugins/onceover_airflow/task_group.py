"""The steps that every repair DAG shares, as one task group that can be mapped: detect, repair, confirm, and the check
of a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from airflow.sdk import BaseOperator, TriggerRule, WeightRule, XComArg, task_group

from onceover_airflow.operators.repair import (
    CheckRangeOperator,
    ConfirmOperator,
    DetectOperator,
    NeededOperator,
    RepairOperator,
    Scope,
)

ON_CALL, SCHEDULED, BACKFILL = 100, 10, 1
"""Priorities in Spark's pool: a person on call waits for the repair that runs, and for no other."""
CHECKS = 10
"""Retries of the check of a range, half a minute apart."""


class Steps(Protocol):
    """The task group `windows`, for one pipeline or mapped over several."""

    def __call__(self, *, pipeline: str) -> object: ...
    def expand(self, *, pipeline: Sequence[str] | XComArg) -> object: ...


def repair_steps(*, scope: Scope, priority: int, reason_needed: bool = False) -> Steps:
    """Build the tasks detect, needed, repair and confirm for a pipeline, and check if a run requests a range. A skipped
    repair skips confirm, but not check."""

    @task_group(group_id="windows")
    def windows(pipeline: str) -> None:
        detect = DetectOperator(task_id="detect", pipeline=pipeline, scope=scope, reason_needed=reason_needed)
        # Outside of Spark's pool: a skipped repair must not wait for another one's slot.
        needed = NeededOperator(task_id="needed", pipeline=pipeline, detection=detect.output)
        detect >> needed
        add_repair(needed, pipeline, detect.output, priority, is_checked=scope == "run")

    return cast(Steps, windows)


def add_repair(before: BaseOperator, pipeline: str, request: XComArg, priority: int, *, is_checked: bool) -> None:
    """Add the tasks repair and confirm after a task, for the request that is in the output of `detect` or `reread`; and
    check, if it also names a range."""
    repair = RepairOperator(
        task_id="repair",
        pipeline=pipeline,
        detection=request,
        priority_weight=priority,
        weight_rule=WeightRule.ABSOLUTE,
    )
    confirm = ConfirmOperator(task_id="confirm", pipeline=pipeline, detection=request)
    before >> repair >> confirm
    if is_checked:
        # Another repair that holds windows of the range has some minutes to end.
        confirm >> CheckRangeOperator(
            task_id="check",
            pipeline=pipeline,
            detection=request,
            retries=CHECKS,
            trigger_rule=TriggerRule.NONE_FAILED,
        )
