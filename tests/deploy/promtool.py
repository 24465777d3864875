"""Prometheus' promtool for tests: one that is there already, else that of Debian's package, without root.

Order: ONCEOVER_PROMTOOL (a path), `promtool` on PATH, then the package `prometheus` by `apt-get download`, unpacked
into `.local/prometheus`. apt holds the package to the distribution's signatures.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
REMEDY: Final = "install it (Debian: apt-get install prometheus), or name its program in ONCEOVER_PROMTOOL"
PATIENCE: Final = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10", "-o", "Acquire::https::Timeout=10")


def find_promtool() -> str:
    """Return the first of the ways above; skip the test, and say how to get one, if there is none."""
    if named := os.environ.get("ONCEOVER_PROMTOOL"):
        return named
    if found := shutil.which("promtool"):
        return found
    home = ROOT / ".local" / "prometheus"
    home.mkdir(parents=True, exist_ok=True)
    program = home / "promtool"
    with (home / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two lanes may want it at once
        if not program.exists():
            try:
                _fetch(program)
            except (OSError, subprocess.SubprocessError) as error:
                pytest.skip(f"no promtool, and Debian's package was not fetched ({error}); {REMEDY}")
    return str(program)


def run_promtool(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [find_promtool(), *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)


def _fetch(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        download = ["apt-get", *PATIENCE, "download", "prometheus"]
        subprocess.run(download, cwd=folder, check=True, capture_output=True, timeout=120)
        (package,) = Path(folder).glob("prometheus_*.deb")
        unpack = ["dpkg-deb", "-x", str(package), f"{folder}/unpacked"]
        subprocess.run(unpack, check=True, capture_output=True, timeout=60)
        (Path(folder) / "unpacked" / "usr" / "bin" / "promtool").replace(program)
