"""Failures of Spark: their one-line reason, and which windows of a query cause them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from onceover.errors import DENIED, AccessDeniedError, SparkLostError

# Python exceptions of executors arrive as a traceback inside the JVM's text; their last line is the reason.
_PYTHON = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?(?:\w*(?:Error|Exception)): (.+)$")
_DENIAL = re.compile(rf"AccessDeniedError: ({DENIED} .+)")
_CALLED = "An error occurred while calling "


def summarize(error: Exception, width: int = 400) -> str:
    """Return the innermost reason in the error's text, as one line of at most `width` characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith(_CALLED)]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    python = [match.group(0) for line in lines if (match := _PYTHON.match(line))]
    reason_text = (python or causes[-1:] or [line.removeprefix(": ") for line in lines[:1]] or [type(error).__name__])[
        -1
    ]
    return reason_text if len(reason_text) <= width else reason_text[: width - 3] + "..."


def find_refusal(error: Exception) -> str | None:
    """Return what a TerminalError of an executor says, None for any other failure: a retry repeats the former."""
    name, _, message = summarize(error).partition(": ")
    return message if name.rpartition(".")[2] == "TerminalError" else None


def reject_unblamed(error: Exception) -> None:
    """Raise AccessDeniedError if a task failed by one, and SparkLostError if the cluster has ended the application: no
    window is to blame. A retry repeats the first."""
    if denied := _DENIAL.search(str(error)):
        raise AccessDeniedError(denied[1]) from error
    if is_stopped():
        raise SparkLostError(
            "the cluster has ended Spark's application, and its last lines above say why; nothing is half-done, run "
            "this again"
        ) from error


def is_stopped() -> bool:
    """Return whether the cluster has ended this process's application, which stops its context."""
    context: Any = SparkContext._active_spark_context
    try:
        return context is not None and context._jsc is not None and bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):  # a JVM that died stopped nothing
        return False


log = logging.getLogger(__name__)
W = TypeVar("W")
E = TypeVar("E")


def isolate_failures(
    windows: Sequence[W], run: Callable[[Sequence[W]], E], failed: Callable[[W, str], E]
) -> Iterator[E]:
    """Yield `run` of all windows; if Spark fails, split them in halves until each bad window is alone, and yield its
    `failed` with the reason. Raises SparkLostError if Spark's JVM has died, and as `reject_unblamed`."""
    try:
        result = run(windows)
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkLostError("Spark's JVM has died; run the command again, nothing is half-done") from error
    except (PySparkException, Py4JError) as error:
        reject_unblamed(error)
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
