"""Repair a range of windows by hand: choose the pipeline, the times and a reason, or look first with a dry run.

A **dry run** writes nothing: the log of `windows.detect`, and its XCom `return_value`, list each window with its
findings, the lines and bytes that would be read, and what would change. A real run needs a reason; the ledger records
it with the user. `from` is the start of the first window, `to` the end of the last, exclusive: aligned, with a
time zone. A range that ends in the future is judged up to now. With the dry run's token as `plan`, a run repairs
exactly what the dry run showed, and fails, naming the windows, if that has changed since.

### When a task is red

- `windows.detect`: the times, the pipeline or the reason are invalid, or a part does not answer; the error in the log
  says which. Trigger again with correct values, or run `onceover doctor`.
- `windows.needed`: the detection left no result. Clear `windows.detect` and the tasks after it.
- `windows.repair`: the Spark application failed. Fix what the last lines of the log name, then clear the task: running
  it twice is harmless.
- `windows.confirm`: the published rows cannot be read back; the error in the log says why. Clear the task.
- `windows.check`: windows of the range are neither confirmed nor in need of nothing, and the log lists them with their
  reasons. Run `onceover explain PIPELINE WINDOW`, as the message says. While another repair holds some, the task waits
  for five minutes; after that, clear it when the other repair has ended.

Running while `repair_failed_windows` works on the same windows is safe: one publishes, the other finds nothing to do.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_dag
from onceover_airflow.tables import with_findings
from onceover_airflow.task_group import ON_CALL, repair_steps

FORM = {
    "pipeline": params.one_pipeline(params.known_pipelines()),
    **params.window_range(),
    "reason": params.reason("Why the repair is needed. Required unless this is a dry run; kept in the ledger."),
    "dry_run": params.switch("Dry run", "List what a repair would do; write nothing."),
    "force": params.force(),
    "plan": params.plan(),
}


@dag(schedule=None, **describe_dag(with_findings(__doc__), "repair", "on call", max_active_runs=4, params=FORM))
def repair_on_call() -> None:
    repair_steps(scope="run", priority=ON_CALL, reason_needed=True)(pipeline="{{ params.pipeline }}")


repair_on_call()
