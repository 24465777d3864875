"""What a run needs to know of its backfill, which no task can look up: the user who asked, and the days that Airflow
left out. Airflow's scheduler calls this before any task of the run starts.

A backfill that reprocesses a day clears the day's earlier run, which keeps the user who asked for it first, or none:
the ledger is to get the right name. Days without a run are in the conf of the backfill's last run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

from onceover_airflow.backfill_days import LEFT_OUT, list_left_out

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

DAGS = frozenset({"repair_history"})
"""Other DAGs are none of Onceover's business."""


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:
    """Name the user of the run's backfill as the run's, and the days left out. The scheduler's own transaction stores
    both."""
    if dag_run.dag_id not in DAGS or dag_run.backfill is None:
        return
    backfill = dag_run.backfill
    if backfill.triggering_user_name:
        dag_run.triggering_user_name = backfill.triggering_user_name
    days = backfill.backfill_dag_run_associations
    conf = {key: value for key, value in (dag_run.conf or {}).items() if key != LEFT_OUT}
    if dag_run.logical_date == max((day.logical_date for day in days if day.dag_run_id is not None), default=None):
        in_flight = [day.logical_date for day in days if day.exception_reason == "in flight"]
        left_out = list_left_out(backfill.from_date, backfill.to_date, backfill.created_at, in_flight)
        conf |= {LEFT_OUT: [f"{day:%Y-%m-%d}" for day in left_out]} if left_out else {}
    dag_run.conf = conf
