"""`onceover sweep`, against a library that only remembers what it was asked."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.onceover.cli.conftest import Run

from onceover.cli.commands import sweep
from onceover.detection.certified import CertifiedWindow
from onceover.detection.sweep import DifferingWindow, Say, ShortQuarantine, SweepResult
from onceover.errors import UsageError
from onceover.ledger.aggregates import Fingerprint
from onceover.model.digest import Digest
from onceover.model.finding import Evidence, Finding
from onceover.model.finding_kinds import Kind
from onceover.model.window import WindowRange

START = datetime(2013, 1, 1, 5, tzinfo=UTC)
ROWS = Fingerprint(2, "1:2")
Asked = list[tuple[WindowRange | None, bool]]
MISSING = DifferingWindow(
    CertifiedWindow(Evidence(START, START.replace(hour=6), 4, Digest(), Digest(), 4, 100), 1, ROWS, ROWS),
    (Finding(Kind.MISSING_FILE, {"expected_length": 100, "file_length": None}),),
)
GONE = {"differing": (MISSING,), "reopened": 1}
SHORT = {"quarantine": (ShortQuarantine(START.date(), "/raw/things/quarantine/2013-01-01.log", 100, None),)}


class Sweep:
    """The library's part: what it was asked, and the answer it gives."""

    def __init__(self) -> None:
        self.asked: Asked = []
        self.answer = SweepResult("things", 24, (), 0)

    def __call__(self, context: object, chosen: WindowRange | None, *, write: bool, say: Say) -> SweepResult:
        self.asked.append((chosen, write))
        return self.answer


@pytest.fixture
def library(home: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    found = Sweep()
    monkeypatch.setattr(sweep, "sweep_pipeline", found)
    return found


def test_sweep_without_findings_exits_0(run: Run, library: Sweep) -> None:
    done = run("sweep", "things")
    assert (done.exit_code, done.stdout) == (0, "24 certified windows compared, none no longer as certified\n")
    assert library.asked == [(None, True)]


@pytest.mark.parametrize(
    ("changed", "code", "says"),
    [
        (GONE, 1, "2013-01-01T05:00Z  missing file (expected_length 100, file_length None)"),
        (
            GONE,
            1,
            "1 window will be judged again by the next detection; see `onceover explain things 2013-01-01T05:00Z`",
        ),
        (SHORT, 1, "quarantine of 2013-01-01 has 0 of 100 bytes: bring /raw/things/quarantine/2013-01-01.log back"),
        ({"waiting": 3}, 75, "3 windows skipped"),
    ],
)
def test_sweep_names_what_it_found(run: Run, library: Sweep, changed: dict[str, Any], code: int, says: str) -> None:
    library.answer = replace(library.answer, **changed)
    done = run("sweep", "things")
    assert (done.exit_code, says in done.stdout) == (code, True), done.stdout


def test_dry_run_writes_nothing_and_json_is_for_programs(run: Run, library: Sweep) -> None:
    library.answer = SweepResult("things", 24, (MISSING,), 0)
    done = run("sweep", "things", "--dry-run", "--json")
    assert library.asked == [(None, False)]
    assert json.loads(done.stdout)["differing"][0]["window"] == "2013-01-01T05:00Z"


def test_range_is_half_open_and_half_a_range_is_refused(run: Run, library: Sweep) -> None:
    run("sweep", "things", "--from", "2013-01-01T05:00Z", "--to", "2013-01-01T07:00Z")
    assert run("sweep", "things", "--from", "2013-01-01T05:00Z").exit_code == UsageError.exit_code
    assert library.asked == [(WindowRange(START, START.replace(hour=7)), True)]
