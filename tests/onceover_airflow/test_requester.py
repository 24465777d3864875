"""The requester of a run, as the ledger keeps the name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from onceover_airflow.requester import name_requester


def make_run(run_type: str, user: str | None) -> Any:
    return SimpleNamespace(run_type=run_type, triggering_user_name=user)


@pytest.mark.parametrize(
    ("run", "who"),
    [
        (make_run("scheduled", None), "scheduler"),
        (make_run("manual", "ada"), "ada"),
        (make_run("manual", None), "unknown user"),
        (make_run("backfill", "ada"), "ada (backfill)"),
        (make_run("operator_triggered", None), "unknown user (operator triggered)"),
    ],
)
def test_requester_is_named_for_each_run_type(run: Any, who: str) -> None:
    assert name_requester(run) == who
