"""The table of faults names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "faults" / "README.md"


def list_tests(file: Path) -> set[str]:
    return {each.name for each in ast.parse(file.read_text()).body if isinstance(each, ast.FunctionDef)}


def test_each_fault_of_the_table_has_a_test_that_exists() -> None:
    rows = [line for line in TABLE.read_text().splitlines()[2:] if line.startswith("| ")][2:]
    named = [re.fullmatch(r"\| .+ \| `(tests/\S+\.py)::(test_\w+)` \|", row) for row in rows]
    assert None not in named
    assert rows
    assert [row[0] for row in named if row and row[2] not in list_tests(ROOT / row[1])] == []
