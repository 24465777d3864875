"""What a Spark error says, in one line."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from onceover.errors import SparkLostError

# Python exceptions of executors arrive as a traceback inside the JVM's text; their last line is the reason.
_PYTHON = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?(?:\w*(?:Error|Exception)): (.+)$")


def one_line(error: Exception, width: int = 400) -> str:
    """The innermost reason that the error's text names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    python = [match.group(0) for line in lines if (match := _PYTHON.match(line))]
    found = (python or causes[-1:] or lines[:1] or [type(error).__name__])[-1]
    return found if len(found) <= width else found[: width - 3] + "..."


# A query over many windows, of which some may be unreadable: those fail, and no other.

log = logging.getLogger(__name__)
W = TypeVar("W")
E = TypeVar("E")


def in_halves(windows: Sequence[W], together: Callable[[Sequence[W]], E], failed: Callable[[W, str], E]) -> Iterator[E]:
    """What `together` gives for all of them; if Spark fails, for each half, until the bad window is alone and has
    `failed` with the reason. Raises SparkLostError when there is no Spark any more."""
    try:
        ended = together(windows)
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkLostError("Spark's JVM is gone; run it again, nothing is half-done") from error
    except (PySparkException, Py4JError) as error:
        reason = one_line(error)
        if len(windows) == 1:
            yield failed(windows[0], reason)
            return
        log.warning("%d windows together failed (%s); trying them in halves", len(windows), reason)
        half = len(windows) // 2
        yield from in_halves(windows[:half], together, failed)
        yield from in_halves(windows[half:], together, failed)
    else:
        yield ended
