"""One batch's Spark side: its query run once, and what the rows that return say of the batch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.errors import (
    BatchTooLargeError,
    PoisonRecordError,
    RegistryAwayError,
    SparkLostError,
    TransientError,
    UnreadableRecordError,
)
from onceover.ingest.batch_query import BatchQuery
from onceover.ingest.batch_steps import BatchResult
from onceover.ingest.delivery import join_shards
from onceover.ingest.landing import AppendFailedError, collect_results
from onceover.model.batch import Increment, Landing
from onceover.model.offsets import OffsetRange
from onceover.model.windowing import Windowing
from onceover.spark.failure import reject_unblamed, summarize
from onceover.spark.hang_watch import end_hung_spark
from onceover.spark.hdfs_leases import open_leases
from onceover.spark.source import name_shards

log = logging.getLogger(__name__)
_TASK_LOGGERS: Final = ("org.apache.spark.executor.Executor", "org.apache.spark.scheduler.TaskSetManager")
_POISON: Final = ("StackOverflowError", "OutOfMemoryError")
_UNREADABLE: Final = (
    UnreadableRecordError.__name__, "MemoryError", "Python worker exited unexpectedly", "ExecutorLostFailure"
)  # fmt: skip
"""Signs of both in the text of a failed task."""


def append_batch(
    spark: SparkSession,
    context: PipelineContext,
    make_query: Callable[[], BatchQuery],
    ranges: Sequence[OffsetRange],
    shards: Sequence[OffsetRange],
) -> BatchResult:
    """Append every record of these `ranges` to its window's file, as the query reads them by these `shards`, and return
    what the batch read, landed and counts for."""
    filled = [shard for shard in shards if len(shard)]
    try:
        with end_hung_spark(spark, sum(map(len, filled))), attempt(), silence_tasks(spark):
            query = make_query()
            with name_shards(spark, filled):
                rows = query.run()
        done = collect_results(rows, query.generation, query.quarantine_day)
    except AppendFailedError as error:
        # This driver holds the epoch, so these files' leases belong to a driver that is dead or fenced.
        for path in error.held_paths:
            with attempt():
                open_leases(spark, context).recover(path)
        raise
    read = join_shards(ranges, filled, done.shards, done.newest_ms)
    return BatchResult(read, _list_increments(done.landings, query.windowing), done.landings, done.rows)


def _list_increments(landings: Sequence[Landing], windowing: Windowing) -> list[Increment]:
    """Return the increment of each landing's window, by the records that the same task grouped."""
    windows = [(windowing.window_at(each.window_start), each.digest) for each in landings if each.window_start]
    return [Increment(window.start, window.end, digest) for window, digest in windows]


@contextmanager
def attempt() -> Iterator[None]:
    """Raise errors of Spark or its gateway as TransientError with a one-line reason, SparkLostError for a dead JVM, and
    as `reject_unblamed`."""
    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkLostError("Spark's JVM has died; start ingest again, it resumes where it stopped") from error
    except (PySparkException, Py4JError) as error:
        reject_unblamed(error)
        kind, reason = _find_kind(str(error)), summarize(error)
        of_ours = reason.removeprefix(f"{kind.__module__}.{kind.__name__}: ")
        raise kind(of_ours if of_ours != reason else f"Spark failed: {reason}") from error


@contextmanager
def silence_tasks(spark: SparkSession) -> Iterator[None]:
    """Keep the stack traces of failed tasks out of the log, but for an error whose kind does not say what to do."""
    log4j = cast(Any, spark._jvm).org.apache.logging.log4j

    def set_level(level: str) -> None:
        for name in _TASK_LOGGERS:
            log4j.core.config.Configurator.setLevel(name, log4j.Level.getLevel(level))

    set_level("OFF")
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if _find_kind(str(error)) is TransientError:
            log.error("%s", error)
        raise
    finally:
        with suppress(Py4JError, OSError):  # a JVM that died logs no more
            set_level("ERROR")


def _find_kind(text: str) -> type[TransientError]:
    """Return the kind of error that a task raised, by the JVM's text; a process that dies may die of what it reads."""
    for kind in (BatchTooLargeError, RegistryAwayError):
        if kind.__name__ in text:
            return kind
    if any(sign in text for sign in _POISON):
        return PoisonRecordError
    return UnreadableRecordError if any(sign in text for sign in _UNREADABLE) else TransientError
