"""The start and end of each entry of `jobs/`: logging, signals and the exit code."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from onceover.errors import OnceoverError


def run(name: str, main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Exit with the code that `main` returns for the command line; print an error in one line and exit with its code.

    SIGTERM and Ctrl-C unwind the stack, so that `main` releases its resources, and exit with 143 and 130.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("onceover").setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except OnceoverError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
