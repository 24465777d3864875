"""The command line: `onceover COMMAND`. One module a noun; heavy libraries are imported inside."""

from onceover.cli.app import main

__all__ = ["main"]
