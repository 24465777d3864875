"""Every command that README and docs show is run by a test, and the lines of the demo's table are as it prints them."""

from __future__ import annotations

import io
import re
import shutil

from rich.console import Console
from tests.docs.pages import DOCS, README, ROOT
from tests.docs.shell import LINES, is_shell
from tests.docs.steps import ELSEWHERE, JOBS, LOOKS, RESTORES

from onceover_demo.__main__ import show
from onceover_demo.story import DemoResult


def test_every_shown_command_is_run_here_or_elsewhere() -> None:
    here = {step.line for step in (*LOOKS, *JOBS)} | set(RESTORES)
    assert here & ELSEWHERE.keys() == set()
    assert here | ELSEWHERE.keys() == LINES


def test_every_place_that_runs_a_command_elsewhere_exists() -> None:
    places = {place for reason in ELSEWHERE.values() for place in re.findall(r"tests/\S+\.py", reason)}
    assert len(places) >= 3
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_every_block_of_commands_is_recognized() -> None:
    others = [block[0] for page in (README, *DOCS) for block in page.blocks if not is_shell(block[0])]
    assert [line for line in others if shutil.which(line.split()[0])] == []


def test_demo_lines_are_shown_as_the_demo_prints_them() -> None:
    (table,) = [block for block in README.blocks if "before repair" in block[0]]
    checks = [line.removeprefix("yes ") for line in table if line.startswith("yes ")]
    printed = io.StringIO()
    numbers = DemoResult(
        ingest={"late": 7},
        before={"wrong_windows": 65, "wrong_rows": 976, "largest_error": 15, "surplus_flights": 2_500},
        after={"wrong_windows": 0, "wrong_rows": 0, "largest_error": 0, "surplus_flights": 0},
        confirmation={"duplicates": 5_000},
        findings={"unaccounted bytes": (121, 0), "aggregate mismatch": (65, 0), "late": (4, 0)},
        states={"certified from ledger": 468, "certified from raw": 121},
        checks=dict.fromkeys(checks, True),
    )
    show(Console(file=printed, width=120), numbers)
    lines = {line.rstrip() for line in printed.getvalue().splitlines()}
    assert set(table) <= lines
    story = (ROOT / "demo" / "onceover_demo" / "story.py").read_text()
    assert [check for check in checks if check not in story] == []
