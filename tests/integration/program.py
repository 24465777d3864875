"""The command line, as a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ONCEOVER = str(Path(sys.executable).with_name("onceover"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `onceover ARGUMENTS`, on a terminal wide enough for a sentence a line."""
    wide = {**os.environ, "COLUMNS": "500"}
    return subprocess.run([ONCEOVER, *arguments], capture_output=True, text=True, check=False, env=wide)


def as_json(*arguments: str) -> Any:
    """Run the command with `--json` and return its output; it must exit 0."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
