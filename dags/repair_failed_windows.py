"""Every 5 minutes: find the windows whose aggregates are wrong, repair them from raw, confirm.

Detection looks at the ledger, not at this run's own interval: event time and wall-clock time differ. Windows with
late records that were counted correctly are certified without Spark; if no window failed, no Spark starts.

### When a task is red

- `pipelines`: the folder of TOMLs cannot be read; see ONCEOVER_PIPELINES in the worker's environment.
- `windows.detect`: a part does not answer, or the pipeline's TOML is wrong; the error in the log says which.
  Run `onceover doctor`. The next run retries by itself.
- `windows.needed`: the detection left no result. Clear `windows.detect` and the tasks after it.
- `windows.repair`: the Spark application failed. Fix what the last lines of the log name, then clear the task: running
  it twice is harmless.
- `windows.confirm`: windows are newly **blocked** after too many tries, or published rows read back differently. Run
  `onceover explain PIPELINE WINDOW`, as the message says; when the cause is fixed, trigger `repair_on_call`.

A pipeline's repair that takes long, or waits for Spark's pool, holds up no other pipeline: the next run begins all the
same. It judges that pipeline too, and requests nothing of it until the earlier run has repaired it.

A red pipeline does not block the others. A blocked window does not block its pipeline and turns red only once.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_schedule, pipelines
from onceover_airflow.tables import with_findings
from onceover_airflow.task_group import SCHEDULED, repair_steps

# No pipeline's repair holds up the detection of others.
RUNS = len(params.known_pipelines()) + 2


@dag(schedule="*/5 * * * *", **describe_schedule(with_findings(__doc__), "repair", max_active_runs=RUNS))
def repair_failed_windows() -> None:
    repair_steps(scope="ledger", priority=SCHEDULED).expand(pipeline=pipelines())


repair_failed_windows()
