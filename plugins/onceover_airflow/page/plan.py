"""What a repair of a range would do now, in time that a page allows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from onceover.context import PipelineContext
from onceover.detection.future_range import reject_future_range
from onceover.detection.plan import plan_repair
from onceover.errors import UsageError
from onceover.model.window import WindowRange

MAX_DAYS: Final = 31
PATIENCE_SECONDS: Final = 2.0
"""How long a page waits for batches that are landing."""


def read_plan(context: PipelineContext, start: str, end: str, force: bool) -> Mapping[str, Any]:
    """Return the plan for typed times, `end` exclusive. Raises UsageError for a range that is not aligned, lies in the
    future or is longer than MAX_DAYS."""
    span = context.windowing.parse_range(start, end)
    if span.end - span.start > timedelta(days=MAX_DAYS):
        raise UsageError(
            f"a plan is for {MAX_DAYS} days at most; for more, use Airflow's backfill of the DAG repair_history"
        )
    return plan_windows(context, reject_future_range(context, span), force)


def plan_windows(context: PipelineContext, span: WindowRange, force: bool) -> Mapping[str, Any]:
    """Return `windows`, how many were left out as `changing`, `totals`, and the `token` by which a run does exactly
    this."""
    return plan_repair(context, window_range=span, force=force, patience=PATIENCE_SECONDS).as_dict()
