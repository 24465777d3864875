"""Failures of Spark: their one-line reason, and which windows of a query cause them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from onceover.errors import DENIED, AccessDeniedError, SparkLostError

# Python exceptions of executors arrive as a traceback inside the JVM's text; their last line is the reason.
_PYTHON = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?(?:\w*(?:Error|Exception)): (.+)$")
_DENIAL = re.compile(rf"AccessDeniedError: ({DENIED} .+)")


def summarize(error: Exception, width: int = 400) -> str:
    """Return the innermost reason in the error's text, as one line of at most `width` characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    python = [match.group(0) for line in lines if (match := _PYTHON.match(line))]
    reason_text = (python or causes[-1:] or lines[:1] or [type(error).__name__])[-1]
    return reason_text if len(reason_text) <= width else reason_text[: width - 3] + "..."


def find_refusal(error: Exception) -> str | None:
    """Return what a TerminalError of an executor says, None for any other failure: a retry repeats the former."""
    name, _, message = summarize(error).partition(": ")
    return message if name.rpartition(".")[2] == "TerminalError" else None


def reject_denial(error: Exception) -> None:
    """Raise AccessDeniedError if a task failed by one: no window is to blame, and a retry repeats it."""
    if denied := _DENIAL.search(str(error)):
        raise AccessDeniedError(denied[1]) from error


log = logging.getLogger(__name__)
W = TypeVar("W")
E = TypeVar("E")


def isolate_failures(
    windows: Sequence[W], run: Callable[[Sequence[W]], E], failed: Callable[[W, str], E]
) -> Iterator[E]:
    """Yield `run` of all windows; if Spark fails, split them in halves until each bad window is alone, and yield its
    `failed` with the reason. Raises SparkLostError if Spark's JVM has died, as `reject_denial` for a missing right."""
    try:
        result = run(windows)
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkLostError("Spark's JVM has died; run the command again, nothing is half-done") from error
    except (PySparkException, Py4JError) as error:
        reject_denial(error)
        reason = summarize(error)
        if len(windows) == 1:
            yield failed(windows[0], reason)
            return
        log.warning("%d windows together failed (%s); trying them in halves", len(windows), reason)
        half = len(windows) // 2
        yield from isolate_failures(windows[:half], run, failed)
        yield from isolate_failures(windows[half:], run, failed)
    else:
        yield result


def extract_reason(error: PySparkException) -> str:
    """Return the first line of an error about SQL, without its class and state."""
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return re.sub(r"\s*SQLSTATE:.*", "", re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text.strip())).rstrip(".")
