"""The course of Spark's jobs in the log: how many tasks have ended of those that are known so far."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
EVERY_SECONDS = 10.0


@contextmanager
def log_tasks(spark: SparkSession, every: float = EVERY_SECONDS) -> Iterator[None]:
    """Log `Spark has done N of M tasks` every so many seconds while a job runs. A new stage, whose tasks are not known
    before, begins a count of its own."""
    ended = Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not ended.wait(every):
            try:
                done, known = _count_tasks(tracker)
            except (Py4JError, OSError):
                return  # the JVM has died, which the block notices
            if known:
                log.info("Spark has done %d of %d tasks", done, known)

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
