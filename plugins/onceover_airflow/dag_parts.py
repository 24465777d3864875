"""What Onceover's DAGs share: their arguments, and the task that lists the pipelines."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Param, task

from onceover_airflow import params
from onceover_airflow.retries import DEFAULT_ARGS


@task
def pipelines() -> list[str]:
    """List the pipelines when the run starts: a new TOML counts at once, not from the next parse of the DAG."""
    return params.known_pipelines()


def describe_dag(document: str | None, *tags: str, **more: Any) -> dict[str, Any]:
    """Return the arguments of `@dag`: its document, its tags, and `more` that it has of its own."""
    return {
        "max_active_runs": 1,
        "is_paused_upon_creation": False,
        "default_args": DEFAULT_ARGS,
        "tags": ["onceover", *tags],
        "doc_md": document,
        **more,
    }


def describe_schedule(document: str | None, tag: str, **more: Any) -> dict[str, Any]:
    """Return the arguments of `@dag` for a DAG that runs by the clock, and makes up for no time that has passed."""
    return describe_dag(document, tag, **{"start_date": datetime(2013, 1, 1, tzinfo=UTC), "catchup": False, **more})


def describe_decision(document: str | None, **form: Param) -> dict[str, Any]:
    """Return the arguments of `@dag` for a decision: its document, and its form between pipeline and reason,
    which is required unless the form describes its own."""
    pipeline = params.one_pipeline(params.known_pipelines())
    reason = params.reason("Why. Required; the ledger keeps it.")
    form = {"pipeline": pipeline, **form, "reason": form.get("reason", reason)}
    return describe_dag(document, "decision", "on call", max_active_runs=4, params=form)
