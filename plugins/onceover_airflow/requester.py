"""The name of a run's requester, as the ledger keeps it."""

from __future__ import annotations

from airflow.sdk.types import DagRunProtocol


def name_requester(run: DagRunProtocol) -> str:
    """Return `scheduler`, a user, or a user with the run's type. Clearing a task keeps the first user: Airflow records
    no other."""
    kind = str(getattr(run.run_type, "value", run.run_type))
    if kind == "scheduled":
        return "scheduler"
    user = run.triggering_user_name or "unknown user"
    return user if kind == "manual" else f"{user} ({kind.replace('_', ' ')})"
