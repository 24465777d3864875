"""Who asked for a run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from onceover_airflow.who import who_asked


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
def test_asker_is_known_for_each_way_in(run: Run, who: str) -> None:
    assert who_asked(run) == who
