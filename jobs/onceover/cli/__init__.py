"""The command line: `onceover COMMAND`. One module a noun; heavy libraries are imported inside."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """The console script. Ctrl-C ends it with 130 and without a traceback at any moment, while it is loading too."""
    try:
        from onceover.cli.app import app

        app(prog_name="onceover")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
