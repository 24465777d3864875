"""Restore the rows of a window that a repair replaced, as `onceover restore` does.

No proof exists for such rows: the window loses its certificate and is blocked, so that no scheduled repair undoes the
decision. `repair_on_call` over the window rebuilds it again. The ledger keeps the reason and the user who triggered
this run.

### When a task is red

- `restore`: no repair replaced rows of the window, the revision was not kept, or the raw has expired; the error in the
  log says which. Nothing was changed then. While a repair holds the window, Airflow retries by itself.
"""

from __future__ import annotations

from airflow.sdk import dag

from onceover_airflow import params
from onceover_airflow.dag_parts import describe_decision
from onceover_airflow.operators.decisions import RestoreOperator


@dag(schedule=None, **describe_decision(__doc__, window=params.one_window(), revision=params.revision()))
def restore_window() -> None:
    RestoreOperator(task_id="restore", pipeline="{{ params.pipeline }}")


restore_window()
