"""The sweep's task, against a double of the library that records its calls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from airflow.sdk import Context

from onceover.context import PipelineContext
from onceover.detection import sweep
from onceover.detection.certified import CertifiedWindow
from onceover.detection.sweep import DifferingWindow, ShortQuarantine, SweepResult
from onceover.errors import BusyError, TerminalError
from onceover.ledger.aggregates import Fingerprint
from onceover.model.digest import Digest
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover_airflow.operators.sweep import SweepOperator

pytestmark = pytest.mark.airflow

ROWS = Fingerprint(2, "1:2")
START = datetime(2013, 1, 1, 5, tzinfo=UTC)
GONE = DifferingWindow(
    CertifiedWindow(START, START.replace(hour=6), 4, 1, 100, Digest(), Digest(), ROWS, ROWS),
    (Finding(Kind.MISSING_FILE, {"expected_length": 100, "file_length": None}),),
)


@pytest.fixture
def library(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[SweepResult], list[str]]:
    def answering(swept: SweepResult) -> list[str]:
        asked: list[str] = []

        def sweep_pipeline(context: PipelineContext, *, say: sweep.Say) -> SweepResult:
            asked.append(context.name)
            say(1, 2)
            return swept

        monkeypatch.setattr(sweep, "sweep_pipeline", sweep_pipeline)
        return asked

    return answering


def run(pipeline: str = "events") -> dict[str, object]:
    return SweepOperator(task_id="sweep", pipeline=pipeline).execute(cast(Context, {}))


def test_quarantine_that_lost_records_is_red(library: Callable[[SweepResult], list[str]]) -> None:
    short = ShortQuarantine(START.date(), "/raw/events/quarantine/2013-01-01.log", 100, 20)
    library(SweepResult("events", 24, (), 0, quarantine=(short,)))

    with pytest.raises(TerminalError, match=r"1 days have lost records \(2013-01-01\); see `onceover sweep events`"):
        run()


def test_windows_as_certified_are_counted(library: Callable[[SweepResult], list[str]]) -> None:
    asked = library(SweepResult("events", 24, (), 0))

    assert run()["compared"] == 24
    assert asked == ["events"]


def test_differing_window_turns_red_without_a_retry(
    library: Callable[[SweepResult], list[str]],
) -> None:
    library(SweepResult("events", 24, (GONE,), 0, reopened=1))

    with pytest.raises(TerminalError, match=r"1 of 24 .* 2013-01-01T05:00Z; 1 will be judged again .*onceover explain"):
        run()


def test_difference_that_a_batch_may_explain_is_retried(library: Callable[[SweepResult], list[str]]) -> None:
    library(SweepResult("events", 24, (), 3))

    with pytest.raises(BusyError, match="3 windows"):
        run()
