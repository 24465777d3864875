"""A JVM that dies while Spark starts: one line that says so, and the exit code of a failure that may pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_JOB = "from onceover.entrypoint import run; from onceover.spark.session import build; run('job', lambda _: build('x'))"


@pytest.mark.parametrize("after", ["", "sleep 0.5; "])
def test_jvm_killed_at_its_start_is_one_line_and_75(tmp_path: Path, after: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{after}kill -KILL $$\n")
    java.chmod(0o755)
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", _JOB], capture_output=True, text=True, env=environment, timeout=120, check=False
    )

    assert done.returncode == 75, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("job: Spark's JVM died while it started; ")
