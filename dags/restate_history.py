"""Put windows of the past under the contract in force, and rebuild them from raw, as `onceover restate` does.

A migration counts from its cutover on; this is for the records before it. `from` is the start of the first window, `to`
the end of the last, exclusive. Each record is evaluated first: a **dry run** ends there, and its log has the rows that
would change, and a token, with which as `plan` a second run skips the evaluation. The replaced rows stay as revisions.

### When a task is red

- `restate`: the times or the reason are invalid, a window has expired, or the contract dates records otherwise or
  quarantines them; the error in the log names windows and records. Nothing was changed then.
- `needed`: the restatement left no result. Clear `restate` and the tasks after it.
- `repair`, `confirm`, `check`: as in `repair_on_call`. The windows have the contract by then, and the next scheduled
  repair goes on with them.
"""

from __future__ import annotations

from airflow.sdk import WeightRule, dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_dag
from onceover_airflow.operators.repair import NeededOperator
from onceover_airflow.operators.restate import RestateOperator
from onceover_airflow.task_group import ON_CALL, add_repair

FORM = {
    "pipeline": params.one_pipeline(params.known_pipelines()),
    **params.window_range(),
    "reason": params.reason("Why. Required unless this is a dry run; the ledger keeps it."),
    "dry_run": params.switch("Dry run", "Evaluate the windows, and log how their rows would change."),
    "plan": params.plan(),
}


@dag(schedule=None, **describe_dag(__doc__, "repair", "on call", max_active_runs=4, params=FORM))
def restate_history() -> None:
    pipeline = "{{ params.pipeline }}"
    restate = RestateOperator(
        task_id="restate", pipeline=pipeline, priority_weight=ON_CALL, weight_rule=WeightRule.ABSOLUTE
    )
    needed = NeededOperator(task_id="needed", pipeline=pipeline, detection=restate.output)
    restate >> needed
    add_repair(needed, pipeline, restate.output, ON_CALL, is_checked=True)


restate_history()
