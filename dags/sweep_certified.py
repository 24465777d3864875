"""Once a day: compare every certified window with its certificate, and reopen the windows that differ.

Detection skips certified windows. The sweep notices later changes from outside: a window file that was deleted,
truncated or written to, or aggregate rows that were edited by hand. Raw is not read.

### When a task is red

- `pipelines`: the folder of TOMLs cannot be read; see ONCEOVER_PIPELINES in the worker's environment.
- `sweep`: certified windows no longer match their certificates; the log lists them. They are open again, and
  `repair_failed_windows` rebuilds them from raw within minutes, so there is nothing to clear: find out what changes
  them, or they will differ again. If a file is missing, the repair refuses and the window is blocked: restore the file,
  see docs/runbook.md#a-window-looks-wrong. If the log names a part that does not answer, run `onceover doctor`.

A red pipeline does not block the others.
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
    """List the pipelines when the run starts: a new TOML counts at once, not from the next parse of this file."""
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
        execution_timeout=timedelta(hours=2),  # a sweep reads the length of every window file
    ).expand(pipeline=pipelines())


sweep_certified()
