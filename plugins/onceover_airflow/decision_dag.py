"""What the DAGs share that a person starts with a pipeline and a reason: decisions, each one short task, and the reread
of a window."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from onceover_airflow import params
from onceover_airflow.retries import DEFAULT_ARGS


def describe_decision(document: str | None, **form: Param) -> dict[str, Any]:
    """Return the arguments of `@dag` for a decision: its document, and its form between pipeline and reason,
    which is required unless the form describes its own."""
    pipeline = params.one_pipeline(params.known_pipelines())
    reason = params.reason("Why. Required; the ledger keeps it.")
    return {
        "max_active_runs": 4,
        "is_paused_upon_creation": False,
        "default_args": DEFAULT_ARGS,
        "params": {"pipeline": pipeline, **form, "reason": form.get("reason", reason)},
        "tags": ["onceover", "decision", "on call"],
        "doc_md": document,
    }
