"""Aggregated rows as lines of PostgreSQL's COPY text format, made in Spark SQL, one Spark partition at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, TimestampType

from onceover.lines.escapes import ESCAPES

_PARTITIONS_OF_SKETCHES = 32  # the text of a sketch is as long as that of twenty other rows


def format_copy_lines(aggregated: DataFrame, names: Sequence[str]) -> Iterator[str]:
    """Yield a line a row, without its end: `window_ms` as a timestamptz, then the named columns.

    The driver never holds more than two Spark partitions of aggregated rows, of which one is made while the other is
    used; those with sketches are cut smaller. Who stops early leaves one partition to be made.
    """
    if any(isinstance(field.dataType, BinaryType) for field in aggregated.schema):
        aggregated = aggregated.repartition(_PARTITIONS_OF_SKETCHES)
    window = F.date_format(F.timestamp_millis("window_ms"), "yyyy-MM-dd HH:mm:ss'+00'")
    text = aggregated.select(
        F.concat_ws("\t", window, *(_format_value(aggregated, name) for name in names)).alias("line")
    )
    # Not DataFrame.toLocalIterator: Spark 4.2.0 starts its jobs after the end of their query, and so keeps the jobs and
    # all that they refer to until the driver ends: in ingest, a leak with each batch.
    for row in text.rdd.toLocalIterator(prefetchPartitions=True):
        yield row.line


def _format_value(rows: DataFrame, name: str) -> Column:
    text = F.col(name).cast("string")
    if isinstance(rows.schema[name].dataType, BinaryType):
        text = F.concat(F.lit("x"), F.hex(name))  # how PostgreSQL reads bits
    elif isinstance(rows.schema[name].dataType, StringType):
        for plain, written in ESCAPES:
            text = F.replace(text, F.lit(plain.decode()), F.lit(written.decode()))
    elif isinstance(rows.schema[name].dataType, TimestampType):
        text = F.concat(text, F.lit("+00"))  # the session's zone is UTC, PostgreSQL's may be another
    return F.coalesce(text, F.lit("\\N"))
