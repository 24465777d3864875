"""Once a day: expire raw and quarantine that are older than their pipeline's retention, as `onceover retention` does,
and join the ledger's old batches, as `onceover ledger roll-up` does.

Pipelines without `retention` under [storage] keep raw for ever and are skipped. Only windows with a valid certificate
expire. The log lists them with their bytes, and the ledger records which files expired, when, for whom and why: a
scheduled run's id, or the reason that was given by hand. A **dry run** only lists. Ingest moves the files to
ROOT/PIPELINE/expired, or this DAG does while no ingest runs; a day later ingest or the next run deletes them.

### When a task is red

- `pipelines`: the folder of TOMLs cannot be read; see ONCEOVER_PIPELINES in the worker's environment.
- `expire`, `roll_up`: a part does not answer, or the pipeline's TOML is wrong; the error in the log says which. Run
  `onceover doctor`. Nothing is lost meanwhile: raw stays longer, and the ledger larger. Clear the task, or leave it to
  tomorrow's run: either continues where this one stopped.

A red pipeline does not block the others. Windows that are old enough and not certified stay, without a red task;
`repair_failed_windows` or `onceover windows PIPELINE` says why they are not certified.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_schedule, pipelines
from onceover_airflow.operators.retention import ExpireOperator, RollUpOperator

FORM = {
    "reason": params.reason("Recorded with each expired file. Without a reason, the run's id is recorded."),
    "dry_run": params.switch("Dry run", "Only list the files that would expire; write nothing."),
}


# After the sweep, so that a window which the sweep reopens stays.
@dag(schedule="30 4 * * *", **describe_schedule(__doc__, "retention", params=FORM))
def expire_raw() -> None:
    names = pipelines()
    # The first run may move the files of years, or join the batches of months.
    longest = timedelta(hours=2)
    ExpireOperator.partial(task_id="expire", execution_timeout=longest).expand(pipeline=names)
    RollUpOperator.partial(task_id="roll_up", execution_timeout=longest).expand(pipeline=names)


expire_raw()
