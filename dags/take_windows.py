"""Take windows, so that others see who works on them and for which ticket, or release them, as `onceover take` does.

The windows of the range that are not certified are yours until each is certified, which ends it by itself. Nothing
else changes: schedules and other persons may repair them all the same. The name is that of the user who triggered this
run.

### When a task is red

- `take`: another person has windows of the range, and the error in the log says who and for which ticket: ask there, or
  trigger again with a reason, which takes them over. Or no window there can be taken. Nothing was changed then.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_decision
from onceover_airflow.operators.decisions import TakeOperator


@dag(
    schedule=None,
    **describe_decision(
        __doc__,
        **params.window_range(),
        ticket=params.ticket(),
        release=params.switch("Release", "Release the windows instead."),
        reason=params.reason("Why you take windows from another person, or release theirs; the ledger keeps it."),
    ),
)
def take_windows() -> None:
    TakeOperator(task_id="take", pipeline="{{ params.pipeline }}")


take_windows()
