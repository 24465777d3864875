"""Programs that tests put on PATH."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path


def write_python_program(file: Path, source: str) -> None:
    """An executable that runs this source with the Python of the tests. The line of `#!` could not name one whose path
    has a blank."""
    module = file.with_name(f"{file.name}.py")
    module.write_text(textwrap.dedent(source))
    file.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{module}' \"$@\"\n")
    file.chmod(0o755)
