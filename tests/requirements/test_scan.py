"""`make scan` tells what is known, what was not scanned, and that it could not ask."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
SAFE = {"name": "a", "version": "1", "vulns": []}
KNOWN = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "not found"}


def scan(clone: Path, pip_audit: str) -> subprocess.CompletedProcess[str]:
    """Run the scan in a clone with this double of pip-audit."""
    shutil.copytree(REQUIREMENTS, clone / "requirements")
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    tool = clone / ".local" / "scan"
    (tool / "bin").mkdir(parents=True)
    digest = sha256((REQUIREMENTS / "scan.txt").read_bytes()).hexdigest()
    (tool / "installed").write_text(f"{digest}  -\n")
    (tool / "bin" / "pip-audit").write_text(f"#!/usr/bin/env bash\n{pip_audit}\n")
    (tool / "bin" / "pip-audit").chmod(0o755)
    return subprocess.run([clone / "requirements" / "scan"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("packages", "code", "lines"),
    [
        ([SAFE], 0, ["make scan: 1 packages, 0 known vulnerabilities"]),
        ([SAFE, KNOWN], 1, ["b 2: PYSEC-1, fixed in 3", "make scan: 2 packages, 1 known vulnerabilities"]),
        ([SAFE, SKIPPED], 1, ["c: not scanned: not found", "make scan: 1 packages, 0 known vulnerabilities"]),
    ],
    ids=["nothing known", "a vulnerability", "a package skipped"],
)
def test_scan_prints_what_is_known(tmp_path: Path, packages: list[object], code: int, lines: list[str]) -> None:
    report = json.dumps({"dependencies": packages})
    done = scan(tmp_path, f"echo '{report}' >.local/scan/report.json; exit {code}")
    assert (done.stdout.splitlines(), done.returncode) == (lines, code)


def test_scan_without_net_says_nothing_was_scanned(tmp_path: Path) -> None:
    done = scan(tmp_path, "echo 'ConnectionError: no route' >&2; exit 1")
    assert done.returncode == 75
    assert "NOTHING was scanned" in done.stderr
    assert "no route" in done.stderr
    assert done.stdout == ""


def test_scan_of_an_index_without_advisories_scans_nothing(tmp_path: Path) -> None:
    done = scan(tmp_path, f"echo '{json.dumps({'dependencies': [SKIPPED]})}' >.local/scan/report.json")
    assert done.returncode == 75
    assert "NOTHING was scanned" in done.stderr
    assert done.stdout == ""


def test_scan_reads_every_lock(tmp_path: Path) -> None:
    asked = scan(tmp_path, 'echo "$@" >&2').stderr
    locks = {path.name for path in REQUIREMENTS.glob("*.txt")}
    assert {name for name in locks if f"-r requirements/{name}" in asked} == locks
