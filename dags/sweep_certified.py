"""Once a day: compare every certified window with its certificate, and have what differs judged again.

Detection looks no more at a window whose certificate stands. This notices what others did to it since: a window file
that was deleted, cut or written to, or rows of the aggregates that were changed by hand. Raw is not read.

### When a task is red

- `pipelines`: the folder of TOMLs cannot be read; see ONCEOVER_PIPELINES in the worker's environment.
- `sweep`: certified windows no longer are what their certificates say; the log lists them. They are open again, and
  `repair_failed_windows` rebuilds them from raw within minutes, so there is nothing to clear: find out who changes
  them, or it comes again. Where a file is gone the repair refuses, and the window is blocked: put the file back, see
  docs/runbook.md#a-window-looks-wrong. If the log names a part that does not answer instead, run `onceover doctor`.

One pipeline's red does not hold up the others.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task

from onceover_airflow import params
from onceover_airflow.operators.sweep import SweepOperator
from onceover_airflow.retries import DEFAULT_ARGS
from onceover_airflow.tables import with_findings


@task
def pipelines() -> list[str]:
    """Those that there are now: a TOML counts from the moment it is saved, not from the next parse of this file."""
    return params.known_pipelines()


@dag(
    schedule="30 3 * * *",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=DEFAULT_ARGS,
    tags=["onceover", "sweep"],
    doc_md=with_findings(__doc__),
)
def sweep_certified() -> None:
    SweepOperator.partial(
        task_id="sweep",
        map_index_template="{{ task.pipeline }}",
        execution_timeout=timedelta(hours=2),  # it asks for the length of every file there is
    ).expand(pipeline=pipelines())


sweep_certified()
