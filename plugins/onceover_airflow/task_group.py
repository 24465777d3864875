"""The steps that every repair DAG shares: detect, repair, confirm, as one task group that can be mapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from airflow.sdk import XComArg, task_group

from onceover_airflow.operators.repair import ConfirmOperator, DetectOperator, RepairOperator, Scope


class Steps(Protocol):
    """The task group `windows`, for one pipeline or mapped over several."""

    def __call__(self, *, pipeline: str) -> object: ...
    def expand(self, *, pipeline: Sequence[str] | XComArg) -> object: ...


def repair_steps(*, scope: Scope, reason_needed: bool = False) -> Steps:
    """Build the tasks detect, repair and confirm for a pipeline. A skipped repair skips its downstream tasks."""

    @task_group(group_id="windows")
    def windows(pipeline: str) -> None:
        detect = DetectOperator(task_id="detect", pipeline=pipeline, scope=scope, reason_needed=reason_needed)
        repair = RepairOperator(task_id="repair", pipeline=pipeline, detection=detect.output)
        confirm = ConfirmOperator(task_id="confirm", pipeline=pipeline, detection=detect.output)
        detect >> repair >> confirm

    return cast(Steps, windows)
