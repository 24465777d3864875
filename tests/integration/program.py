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
    """`onceover ARGUMENTS`, on a terminal that is wide enough for a sentence a line."""
    wide = {**os.environ, "COLUMNS": "500"}
    return subprocess.run([ONCEOVER, *arguments], capture_output=True, text=True, check=False, env=wide)


def as_json(*arguments: str) -> Any:
    """Run it with `--json` and return the answer; the command must end with 0."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
