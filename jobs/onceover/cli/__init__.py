"""The command line: `onceover COMMAND`. One module per command, imported when the command is called."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the console script. Ctrl-C exits with 130 and without a traceback, even while modules are loading."""
    try:
        from onceover.cli.app import app

        app(prog_name="onceover")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
