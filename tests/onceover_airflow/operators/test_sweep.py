"""The sweep's task, against a double of the library that records its calls."""

from __future__ import annotations

from dataclasses import replace
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
from onceover.model.finding import Evidence, Finding
from onceover.model.finding_kinds import Kind
from onceover_airflow.operators.sweep import SweepOperator

pytestmark = pytest.mark.airflow

ROWS = Fingerprint(2, "1:2")
START = datetime(2013, 1, 1, 5, tzinfo=UTC)
GONE = DifferingWindow(
    CertifiedWindow(Evidence(START, START.replace(hour=6), 4, Digest(), Digest(), 4, 100), 1, ROWS, ROWS),
    (Finding(Kind.MISSING_FILE, {"expected_length": 100, "file_length": None}),),
)
SHORT = ShortQuarantine(START.date(), "/raw/events/quarantine/2013-01-01.log", 100, 20)


RIGHT = SweepResult("events", 24, (), 0)


def run(monkeypatch: pytest.MonkeyPatch, swept: SweepResult) -> dict[str, object]:
    def sweep_pipeline(context: PipelineContext, *, say: sweep.Say) -> SweepResult:
        assert context.name == "events"
        say(1, 2)
        return swept

    monkeypatch.setattr(sweep, "sweep_pipeline", sweep_pipeline)
    return SweepOperator(task_id="sweep", pipeline="events").execute(cast(Context, {}))


def test_windows_as_certified_are_counted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, RIGHT)["compared"] == 24


@pytest.mark.parametrize(
    ("swept", "error", "says"),
    [
        (
            replace(RIGHT, quarantine=(SHORT,)),
            TerminalError,
            r"1 days have lost records \(2013-01-01\); see `onceover sweep events`",
        ),
        (
            replace(RIGHT, differing=(GONE,), reopened=1),
            TerminalError,
            r"1 of 24 .* 2013-01-01T05:00Z; 1 will be judged again .*onceover explain",
        ),
        (replace(RIGHT, waiting=3), BusyError, "3 windows"),
    ],
    ids=["quarantine lost records", "differs", "a batch may explain it"],
)
def test_difference_is_red_unless_a_batch_may_explain_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, swept: SweepResult, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        run(monkeypatch, swept)
