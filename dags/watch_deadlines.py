"""Every 5 minutes: windows that are not certified within their pipeline's deadline turn this red, each once.

A deadline is `deadline = "6h"` under [repair] in a pipeline's TOML: so long after a window's last record it is to be
certified, whatever keeps it from that: a repair that fails, a hole that holds it open, an ingest that stands still.
Who listens to failures is told by one line in the workers' environment, `ONCEOVER_NOTIFIER=MODULE:NAME`.

### When a task is red

- `pipelines`: the folder of TOMLs cannot be read; see ONCEOVER_PIPELINES in the worker's environment.
- `deadline`: the windows that its log names are overdue; run the `onceover explain` that stands there, it says what is
  wrong and what to do. There is nothing to clear: the next run is green unless further windows are overdue. If the log
  names a part that does not answer instead, run `onceover doctor`.

One pipeline's red does not hold up the others.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import dag, task

from onceover_airflow import params
from onceover_airflow.operators.deadline import DeadlineOperator
from onceover_airflow.retries import DEFAULT_ARGS


@task
def pipelines() -> list[str]:
    """Those that there are now: a TOML counts from the moment it is saved, not from the next parse of this file."""
    return params.known_pipelines()


@dag(
    schedule="2-59/5 * * * *",  # between two detections
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=DEFAULT_ARGS,
    tags=["onceover", "deadline"],
    doc_md=__doc__,
)
def watch_deadlines() -> None:
    DeadlineOperator.partial(task_id="deadline", map_index_template="{{ task.pipeline }}").expand(pipeline=pipelines())


watch_deadlines()
