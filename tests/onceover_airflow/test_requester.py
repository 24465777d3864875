"""The requester of a run, as the ledger keeps the name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from onceover_airflow.requester import name_requester


@dataclass(frozen=True)
class Run:
    run_type: str
    triggering_user_name: str | None


@pytest.mark.parametrize(
    ("run", "who"),
    [
        (Run("scheduled", None), "scheduler"),
        (Run("manual", "ada"), "ada"),
        (Run("manual", None), "unknown user"),
        (Run("backfill", "ada"), "ada (backfill)"),
        (Run("operator_triggered", None), "unknown user (operator triggered)"),
    ],
)
def test_requester_is_named_for_each_run_type(run: Run, who: str) -> None:
    assert name_requester(run) == who
