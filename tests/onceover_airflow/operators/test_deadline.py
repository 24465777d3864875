"""The deadline's task."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from airflow.sdk import Context

from onceover.detection import deadlines
from onceover.detection.deadlines import OverdueWindow
from onceover.errors import TerminalError
from onceover_airflow.operators.deadline import DeadlineOperator

pytestmark = pytest.mark.airflow
AT = datetime(2013, 1, 1, 5, tzinfo=UTC)


def run(monkeypatch: pytest.MonkeyPatch, windows: list[OverdueWindow]) -> None:
    known = {"events": windows}
    monkeypatch.setattr(deadlines, "list_overdue", lambda context: known[context.name])
    DeadlineOperator(task_id="deadline", pipeline="events").execute(cast(Context, {}))


def test_deadline_with_nothing_overdue_is_green(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, [])


def test_overdue_window_turns_red_and_names_its_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = [
        OverdueWindow(AT.replace(hour=hour), "failed", ("duplicated",), "raw is damaged" if hour == 6 else None)
        for hour in range(5, 12)
    ]
    with pytest.raises(TerminalError, match="7 windows are not certified") as red:
        run(monkeypatch, windows)
    said = str(red.value)
    assert "2013-01-01T05:00Z is failed (duplicated)" in said
    assert "2013-01-01T06:00Z is failed (raw is damaged)" in said
    assert "and 2 more; see `onceover explain events 2013-01-01T05:00Z`" in said
