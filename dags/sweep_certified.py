"""Once a day: compare every certified window with its certificate, reopen those that differ, and verify one of them.

Detection skips certified windows. The sweep notices later changes from outside: a window file that was deleted,
truncated or written to, or aggregate rows that were edited by hand. It reads no raw. Of one certified window a
pipeline, chosen at random, all of raw is read and every value evaluated again, as by `onceover verify`; windows of more
than a million records or 256 MiB of raw are left out.

### When a task is red

- `pipelines`: the folder of TOMLs cannot be read; see ONCEOVER_PIPELINES in the worker's environment.
- `sweep`: certified windows no longer match their certificates; the log lists them. They are open again, and
  `repair_failed_windows` rebuilds them from raw within minutes, so there is nothing to clear: find out what changes
  them, or they will differ again. If a file is missing, the repair refuses and the window is blocked: restore the file,
  see docs/runbook.md#a-window-looks-wrong. If the log names a part that does not answer, run `onceover doctor`.
- `verify`: the Spark application failed: fix what the last lines of the log name, then clear the task. Or the window is
  not as certified, and the log says how: see docs/runbook.md#a-window-looks-wrong.

A red pipeline does not block the others.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task_group

from onceover_airflow.dag_parts import describe_schedule, pipelines
from onceover_airflow.operators.audit import VerifyOperator
from onceover_airflow.operators.sweep import SweepOperator
from onceover_airflow.tables import with_findings


@task_group(prefix_group_id=False)
def windows(pipeline: str) -> None:
    # A sweep reads the length of every window file.
    SweepOperator(task_id="sweep", pipeline=pipeline, execution_timeout=timedelta(hours=2))
    VerifyOperator(task_id="verify", pipeline=pipeline, execution_timeout=timedelta(minutes=30))


@dag(schedule="30 3 * * *", **describe_schedule(with_findings(__doc__), "sweep"))
def sweep_certified() -> None:
    windows.expand(pipeline=pipelines())


sweep_certified()
