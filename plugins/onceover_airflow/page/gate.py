"""Who may read the page, and which actions a user may start: Airflow's own answers, by DAG.

`get_user` and `requires_access_dag` are in Airflow's core but not on its list of public interfaces;
tests/onceover_airflow/page/test_gate.py holds them to what this page needs.
"""

from __future__ import annotations

from typing import Annotated, Final

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag
from fastapi import Depends

REPAIR: Final = "repair_on_call"
"""The DAG that a repair from the page runs. Who may see its runs may read the page."""

RECORDS_READER: Final = requires_access_dag("GET", DagAccessEntity.TASK_LOGS, REPAIR)
"""What routes demand besides that show values of records: who reads the tasks' logs can see them there."""

READER: Final = (Depends(get_user), Depends(requires_access_dag("GET", DagAccessEntity.RUN, REPAIR)))
"""What every route demands: a session (401), a valid one (403), and the right to see the runs of `REPAIR` (403)."""

User = Annotated[BaseUser, Depends(get_user)]


def may_start(user: BaseUser, dag_id: str) -> bool:
    """Return whether Airflow would let the user start a run of the DAG. The button only says so: Airflow decides."""
    return get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag_id), user=user
    )
