"""Repair a range of windows by hand: choose the pipeline, the times and a reason, or look first with a dry run.

A **dry run** writes nothing: the log of `windows.detect`, and its XCom `return_value`, list each window with its
findings, the lines and bytes that would be read, and what would change. A real run needs a reason; the ledger records
it with the user. `from` is the start of the first window, `to` the end of the last, exclusive: aligned, in the past,
with a time zone.

### When a task is red

- `windows.detect`: the times, the pipeline or the reason are invalid, a part does not answer, or Kafka's log was cut
  and no window is judged until that is settled; the error in the log says which. Trigger again with correct values, or
  run `onceover doctor`.
- `windows.repair`: the Spark application failed. Fix what the last lines of the log name, then clear the task: running
  it twice is harmless.
- `windows.confirm`: windows are newly **blocked**, or published rows read back differently. Run
  `onceover explain PIPELINE WINDOW`, as the message says.

Running while `repair_failed_windows` works on the same windows is safe: one publishes, the other finds nothing to do.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.retries import DEFAULT_ARGS
from onceover_airflow.tables import with_findings
from onceover_airflow.task_group import repair_steps


@dag(
    schedule=None,
    max_active_runs=4,
    is_paused_upon_creation=False,
    default_args=DEFAULT_ARGS,
    params={
        "pipeline": params.one_pipeline(params.known_pipelines()),
        "from": params.window_bound("From", "Start of the first window."),
        "to": params.window_bound("To", "End of the last window, exclusive."),
        "reason": params.reason("Why the repair is needed. Required unless this is a dry run; kept in the ledger."),
        "dry_run": params.switch("Dry run", "List what a repair would do; write nothing."),
        "force": params.force(),
    },
    tags=["onceover", "repair", "on call"],
    doc_md=with_findings(__doc__),
)
def repair_on_call() -> None:
    repair_steps(scope="run", reason_needed=True)(pipeline="{{ params.pipeline }}")


repair_on_call()
