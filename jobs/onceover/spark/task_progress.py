"""The course of Spark's jobs in the log: how many tasks have ended of those that are known so far, and what waits for a
cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from typing import Any

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
EVERY_SECONDS = 10.0


@contextmanager
def log_tasks(spark: SparkSession, every: float = EVERY_SECONDS) -> Iterator[None]:
    """Log `Spark has done N of M tasks` every so many seconds while a job runs, and whether it waits for executors. A
    new stage, whose tasks are not known before, begins a count of its own."""
    tracker = spark.sparkContext.statusTracker()

    def say() -> None:
        done, known = _count_tasks(tracker)
        if known:
            waits = "" if has_executors(spark) else "; it waits for executors, which a full queue gives late"
            log.info("Spark has done %d of %d tasks%s", done, known, waits)

    with _repeat(say, every):
        yield


@contextmanager
def log_start(master: str, every: float = EVERY_SECONDS) -> Iterator[None]:
    """Log every so many seconds that a cluster has not started the application yet. Nothing for a local master."""

    def say() -> None:
        log.info("waiting for %s to start Spark's application; a full queue makes it wait", master)

    with nullcontext() if master.startswith("local") else _repeat(say, every):
        yield


def has_executors(spark: SparkSession) -> bool:
    """Return whether any process can run tasks now. A cluster's queue may have given none yet."""
    context: Any = spark.sparkContext._jsc
    is_local = str(spark.sparkContext.master).startswith("local")
    return is_local or context.sc().getExecutorMemoryStatus().size() > 1  # with the driver's own


@contextmanager
def _repeat(say: Callable[[], None], every: float) -> Iterator[None]:
    ended = Event()

    def watch() -> None:
        while not ended.wait(every):
            try:
                say()
            except (Py4JError, OSError):
                return  # the JVM has died, which the block notices

    thread = Thread(target=watch, name="task-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _count_tasks(tracker: StatusTracker) -> tuple[int, int]:
    stages = [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
