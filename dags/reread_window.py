"""Read again from Kafka what the raw of one window has lost, and repair the window, as `onceover reread` does.

Every line of the window is compared with what landed; ingest, or else this run, appends what is missing to the window's
file. The ledger keeps the reason and the user who triggered this run. Running it twice is harmless.

### When a task is red

- `reread`: the window or the reason is invalid, Kafka no longer holds what raw lacks, or the file cannot be read and
  ingest, which must not run while it is replaced, runs; the error in the log says which. Nothing was changed then.
- `repair`, `confirm`: as in `repair_on_call`.
- `check`: the window is not certified; the log has the reason. While ingest still has to read the ranges, the task
  waits for five minutes; clear it once the next scheduled repair has ended.
"""

from __future__ import annotations

from airflow.sdk import WeightRule, dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_decision
from onceover_airflow.operators.reread import RereadOperator
from onceover_airflow.task_group import ON_CALL, add_repair

FORM = describe_decision(__doc__, window=params.one_window())


@dag(schedule=None, **{**FORM, "tags": ["onceover", "repair", "on call"]})
def reread_window() -> None:
    pipeline = "{{ params.pipeline }}"
    reread = RereadOperator(
        task_id="reread", pipeline=pipeline, priority_weight=ON_CALL, weight_rule=WeightRule.ABSOLUTE
    )
    add_repair(reread, pipeline, reread.output, ON_CALL, is_checked=True)


reread_window()
