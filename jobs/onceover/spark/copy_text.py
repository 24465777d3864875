"""Aggregated rows as lines of PostgreSQL's COPY text format, made by tasks, one Spark partition at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType

from onceover.lines.copy_text import format_rows
from onceover.spark.python_worker import freeze_modules

_PARTITIONS_OF_SKETCHES = 32  # the text of a sketch is as long as that of twenty other rows
_BLOCK_BYTES: Final = 1 << 20  # of rows whose lines go to the driver as one value: a value a line takes twice as long


def format_copy_lines(aggregated: DataFrame, names: Sequence[str]) -> Iterator[str]:
    """Yield a line a row, without its end: `window_ms` as a timestamptz, then the named columns.

    The driver never holds more than two Spark partitions of aggregated rows, of which one is made while the other is
    used; those with sketches are cut smaller. Who stops early leaves one partition to be made.
    """
    if any(isinstance(field.dataType, BinaryType) for field in aggregated.schema):
        aggregated = aggregated.repartition(_PARTITIONS_OF_SKETCHES)
    blocks = aggregated.select("window_ms", *names).mapInArrow(_format_blocks, "lines string")
    # Not DataFrame.toLocalIterator: Spark 4.2.0 starts its jobs after the end of their query, and so keeps the jobs and
    # all that they refer to until the driver ends: in ingest, a leak with each batch.
    for row in blocks.rdd.toLocalIterator(prefetchPartitions=True):
        yield from row.lines.split("\n")[:-1]


def _format_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    freeze_modules()
    for batch in batches:
        rows = max(batch.num_rows * _BLOCK_BYTES // max(batch.nbytes, 1), 1)
        for start in range(0, batch.num_rows, rows):
            lines = format_rows(pa.Table.from_batches([batch.slice(start, rows)]))
            yield pa.RecordBatch.from_pydict({"lines": [lines.decode()]})
