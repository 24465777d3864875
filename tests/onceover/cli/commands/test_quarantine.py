"""`onceover quarantine` given arguments that do not fit its action: refused before it opens anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.onceover.cli.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("list", "--day", "../../etc"), "--day takes a date"),
        (("list", "--reason", "x"), "list takes no --reason"),
        (("drop",), "'drop' is not one of"),
        (("release", "--limit", "3", "--dry-run"), "release takes no --limit"),
        (("show", "--dry-run"), "show takes no --dry-run"),
        (("release",), 'give --why "..."'),
    ],
)
def test_quarantine_refuses_malformed_arguments(home: Path, run: Run, arguments: tuple[str, ...], says: str) -> None:
    done = run("quarantine", "things", *arguments)
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
