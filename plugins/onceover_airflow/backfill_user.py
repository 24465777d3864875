"""The user of a backfill that reprocesses a day: Airflow clears the day's earlier run, which keeps the user who asked
for it first, or none. Airflow's scheduler calls this before any task of the run starts, so that the ledger gets the
right name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

DAGS = frozenset({"repair_history"})
"""Other DAGs are none of Onceover's business."""


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:
    """Name the user of the run's backfill as the run's. The scheduler's own transaction stores it."""
    if dag_run.dag_id in DAGS and dag_run.backfill is not None and dag_run.backfill.triggering_user_name:
        dag_run.triggering_user_name = dag_run.backfill.triggering_user_name
