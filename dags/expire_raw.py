"""Once a day: let raw and quarantine go that are older than their pipeline keeps them, as `onceover retention` does.

For pipelines with `retention` under [storage]; the others keep raw for ever, and nothing is done for them. Only windows
whose certificate stands go. The log lists them with their bytes, and the ledger keeps what went, when, for whom and
why: a scheduled run's id, or the reason that was given by hand. A **dry run** only lists. Files are moved to
ROOT/PIPELINE/expired, by ingest if it runs, and deleted a day later by ingest or by the next run: until then a copy is
there.

### When a task is red

- `pipelines`: the folder of TOMLs cannot be read; see ONCEOVER_PIPELINES in the worker's environment.
- `expire`: a part does not answer, or the pipeline's TOML is wrong; the error in the log says which. Run
  `onceover doctor`. Nothing is lost meanwhile: raw only stays longer. Clear the task, or leave it to tomorrow's run:
  either goes on where this one stopped.

One pipeline's red does not hold up the others. Windows that stay though they are old enough are no red: they are not
certified, and `repair_failed_windows` or `onceover windows PIPELINE` says why.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task

from onceover_airflow import params
from onceover_airflow.operators.retention import ExpireOperator
from onceover_airflow.retries import DEFAULT_ARGS


@task
def pipelines() -> list[str]:
    """Those that there are now: a TOML counts from the moment it is saved, not from the next parse of this file."""
    return params.known_pipelines()


@dag(
    schedule="30 4 * * *",  # after the sweep: what that finds changed stays
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=DEFAULT_ARGS,
    params={
        "reason": params.reason("Kept with what goes. Without one, the run's id is kept."),
        "dry_run": params.switch("Dry run", "Only list what would go, write nothing."),
    },
    tags=["onceover", "retention"],
    doc_md=__doc__,
)
def expire_raw() -> None:
    ExpireOperator.partial(
        task_id="expire",
        map_index_template="{{ task.pipeline }}",
        execution_timeout=timedelta(hours=2),  # the first time it may move the files of years
    ).expand(pipeline=pipelines())


expire_raw()
