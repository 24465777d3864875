"""`onceover sweep`, against a library that only remembers what it was asked."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from onceover.cli.app import app
from onceover.cli.commands import sweep
from onceover.detection.certified import CertifiedWindow
from onceover.detection.sweep import DifferingWindow, Say, ShortQuarantine, SweepResult
from onceover.errors import UsageError
from onceover.ledger.aggregates import Fingerprint
from onceover.model.digest import Digest
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.window import WindowRange

TOML = """
[contract]
topic = "events"
window_minutes = 60
format = "json"
schema = "at STRING"
event_time = "to_timestamp(value.at)"
[contract.measures]
events = { count = "*" }
"""
START = datetime(2013, 1, 1, 5, tzinfo=UTC)
ROWS = Fingerprint(2, "1:2")
GONE = DifferingWindow(
    CertifiedWindow(START, START.replace(hour=6), 4, 1, 100, Digest(), Digest(), ROWS, ROWS),
    (Finding(Kind.MISSING_FILE, {"expected_length": 100, "file_length": None}),),
)
Asked = list[tuple[WindowRange | None, bool]]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    (tmp_path / "events.toml").write_text(TOML)
    monkeypatch.setenv("ONCEOVER_PIPELINES", str(tmp_path))
    return []


def run(monkeypatch: pytest.MonkeyPatch, asked: Asked, swept: SweepResult, *arguments: str) -> Result:
    def sweep_pipeline(context: object, window_range: WindowRange | None, *, write: bool, say: Say) -> SweepResult:
        asked.append((window_range, write))
        return swept

    monkeypatch.setattr(sweep, "sweep_pipeline", sweep_pipeline)
    return CliRunner().invoke(app, ["sweep", "events", *arguments])


def test_sweep_without_findings_exits_0(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    done = run(monkeypatch, asked, SweepResult("events", 24, (), 0))

    assert (done.exit_code, done.stdout) == (0, "24 certified windows compared, none no longer as certified\n")
    assert asked == [(None, True)]


def test_differing_window_is_named_and_is_a_failure(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    done = run(monkeypatch, asked, SweepResult("events", 24, (GONE,), 0, 1))

    assert done.exit_code == 1
    assert "2013-01-01T05:00Z  missing file (expected_length 100, file_length None)" in done.stdout
    assert "1 window will be judged again by the next detection; see `onceover explain events 2013-01-01T05:00Z`" in (
        done.stdout
    )


def test_quarantine_that_lost_records_is_a_failure(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    short = ShortQuarantine(START.date(), "/raw/events/quarantine/2013-01-01.log", 100, None)
    done = run(monkeypatch, asked, SweepResult("events", 24, (), 0, quarantine=(short,)))

    assert done.exit_code == 1
    assert (
        "quarantine of 2013-01-01 has 0 of 100 bytes: bring /raw/events/quarantine/2013-01-01.log back" in done.stdout
    )


def test_dry_run_writes_nothing_and_json_is_for_programs(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    done = run(monkeypatch, asked, SweepResult("events", 24, (GONE,), 0), "--dry-run", "--json")

    assert asked == [(None, False)]
    assert json.loads(done.stdout)["differing"][0]["window"] == "2013-01-01T05:00Z"


def test_range_is_half_open(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    run(monkeypatch, asked, SweepResult("events", 2, (), 0), "--from", "2013-01-01T05:00Z", "--to", "2013-01-01T07:00Z")

    assert asked == [(WindowRange(START, START.replace(hour=7), 60), True)]


def test_half_a_range_is_refused(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    done = run(monkeypatch, asked, SweepResult("events", 2, (), 0), "--from", "2013-01-01T05:00Z")

    assert done.exit_code == UsageError.exit_code
    assert asked == []


def test_window_with_a_batch_in_flight_is_for_a_later_try(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    done = run(monkeypatch, asked, SweepResult("events", 24, (), 3))

    assert done.exit_code == 75
    assert "3 windows skipped" in done.stdout
