"""Every 5 minutes: turn red for windows that are not certified within their pipeline's deadline, once for each.

A deadline is `deadline = "6h"` under [repair] in a pipeline's TOML: a window is to be certified so long after its last
record, whatever the obstacle: a repair that fails, a hole that keeps the window open, a stopped ingest. One line in
the workers' environment, `ONCEOVER_NOTIFIER=MODULE:NAME`, names the notifier that failures go to.

### When a task is red

- `pipelines`: the folder of TOMLs cannot be read; see ONCEOVER_PIPELINES in the worker's environment.
- `deadline`: the windows in the log are overdue; run the `onceover explain` from the log, which says what is wrong and
  what to do. There is nothing to clear: the next run is green unless further windows are overdue. If the log names a
  part that does not answer, run `onceover doctor`.

A red pipeline does not block the others.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow.dag_parts import describe_schedule, pipelines
from onceover_airflow.operators.deadline import DeadlineOperator


@dag(schedule="2-59/5 * * * *", **describe_schedule(__doc__, "deadline"))  # between two detections
def watch_deadlines() -> None:
    DeadlineOperator.partial(task_id="deadline").expand(pipeline=pipelines())


watch_deadlines()
