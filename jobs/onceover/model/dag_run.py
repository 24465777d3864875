"""The run of Airflow that an act is of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DagRun:
    """A run of a DAG, by Airflow's names for them."""

    dag_id: str
    run_id: str
