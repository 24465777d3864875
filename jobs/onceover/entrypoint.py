"""The start and end of each entry of `jobs/`: logging, signals and the exit code."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

from onceover.errors import OnceoverError
from onceover.printable import escape


class PrintableFormatter(logging.Formatter):
    """A formatter whose message is one line, and whose traceback holds no control character but ends of lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escape(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return "\n".join(map(escape, super().formatException(ei).split("\n")))


def open_closed_streams() -> None:
    """Open /dev/null in place of each standard stream that the shell has closed, for programs that this one starts,
    too: else the next file or connection would be in its place, and their output would go there."""
    for name in ("stdin", "stdout", "stderr"):  # in this order, each gets its own number
        if getattr(sys, name) is None:
            stream = open(os.devnull, "r+", errors="backslashreplace")  # noqa: SIM115 - as long as the process
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def drop_unwritten(stream: TextIO) -> None:
    """Drop what the stream cannot write: Python would try again as it ends, and exit with 120."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of the command line of `jobs/NAME.py`, with the option that all of them have."""
    parser = argparse.ArgumentParser(prog=f"{name}.py", description=description)
    parser.add_argument("--pipeline", required=True, help="name of a pipeline under pipelines/")
    return parser


def run(name: str, main: Callable[[Sequence[str]], object]) -> NoReturn:
    """Exit with 0 once `main` returns for the command line; print an error in one line and exit with its code.

    SIGTERM and Ctrl-C unwind the stack, so that `main` releases its resources, and exit with 143 and 130.
    """
    open_closed_streams()
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("onceover").setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main(sys.argv[1:])
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except OnceoverError as error:
        print(escape(f"{name}: {error}"), file=sys.stderr)
        sys.exit(error.exit_code)
    finally:
        for stream in (sys.stdout, sys.stderr):
            drop_unwritten(stream)
        gc.freeze()  # as the command line
