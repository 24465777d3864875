"""What the log says while Spark works."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from onceover.spark.task_progress import log_tasks

pytestmark = pytest.mark.spark


def test_tasks_are_counted_while_a_job_runs(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The job's tasks wait for a file, which is written once a line was logged."""
    said = tmp_path / "said"

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        deadline = time.monotonic() + 60
        for batch in batches:
            while not said.exists() and time.monotonic() < deadline:
                pass
            yield batch

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.touch()

    handler, logger = Handler(), logging.getLogger("onceover.spark.task_progress")
    caplog.set_level(logging.INFO, logger.name)
    logger.addHandler(handler)
    try:
        with log_tasks(spark, every=0.05):
            rows = spark.range(0, 2, 1, 2).mapInArrow(wait, "id bigint").collect()
    finally:
        logger.removeHandler(handler)
    assert len(rows) == 2
    assert caplog.messages[0] == "Spark has done 0 of 2 tasks"


def test_nothing_is_logged_without_a_job(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "onceover.spark.task_progress")
    with log_tasks(spark, every=0.01):
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline:
            pass
    assert caplog.messages == []
