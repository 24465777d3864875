"""The command line: `onceover COMMAND`. One module per command, imported when the command is called."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the console script. Ctrl-C exits with 130 and without a traceback, even while modules are loading."""
    gc.set_threshold(50_000)  # loading modules makes 100,000 objects, and no garbage
    try:
        from onceover.cli.app import app

        app(prog_name="onceover")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()  # Python looks for garbage as it ends: among all modules' objects, for 0.1 s
    sys.exit(0)
