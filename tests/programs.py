"""Programs that tests put on PATH, and Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path


def run_python(*arguments: str, environment: Mapping[str, str] = os.environ) -> str:
    """Run Python with these arguments, which must exit 0; return what it prints."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def write_python_program(file: Path, source: str) -> None:
    """An executable that runs this source with the Python of the tests. The line of `#!` could not name one whose path
    has a blank."""
    module = file.with_name(f"{file.name}.py")
    module.write_text(textwrap.dedent(source))
    file.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{module}' \"$@\"\n")
    file.chmod(0o755)
