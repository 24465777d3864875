"""The command line: as a program of its own where a command starts Spark, else in this process, a second faster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from onceover.cli.app import app

ONCEOVER = str(Path(sys.executable).with_name("onceover"))
STARTS_SPARK = (
    "repair",
    "reread",
    "verify",
    "audit",
    "compact",
    "ingest",
    "restate",
    "pipelines",
    "rebuild",
    "release",
)
WIDE = {"COLUMNS": "500"}
"""A terminal wide enough for a sentence a line."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `onceover ARGUMENTS`."""
    if not {*STARTS_SPARK}.isdisjoint(arguments[:2]):
        wide = {**os.environ, **WIDE}
        return subprocess.run([ONCEOVER, *arguments], capture_output=True, text=True, check=False, env=wide)
    done = CliRunner().invoke(app, arguments, prog_name="onceover", env=WIDE, catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def succeed(*arguments: str) -> str:
    """Run the command, which must exit 0, and return what it prints."""
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(*arguments: str) -> Any:
    """Return what the command prints with `--json`; it must exit 0."""
    return json.loads(succeed(*arguments, "--json"))
