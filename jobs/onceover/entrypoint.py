"""How an entry of `jobs/` begins and ends: what it logs, how it takes a signal, and its exit code."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from onceover.errors import OnceoverError


def run(name: str, main: Callable[[Sequence[str]], int]) -> NoReturn:
    """End this process with what `main` returns for the command line; with an error's own code, told in one line.

    SIGTERM and Ctrl-C unwind, so that whatever `main` holds is let go, and end with 143 and 130.
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
