"""Aggregated rows as lines of PostgreSQL's COPY text format, made in Spark SQL, handed on one partition at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, TimestampType

_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))  # backslash first


def copy_lines(aggregated: DataFrame, names: Sequence[str]) -> Iterator[str]:
    """`window_ms` as a timestamptz and then the named columns, without the line's end.

    Streams: never more than one Spark partition of aggregated rows is in the driver.
    """
    text = aggregated.select(
        F.concat_ws("\t", _window_start(), *(_value(aggregated, name) for name in names)).alias("line")
    )
    # Not DataFrame.toLocalIterator: Spark 4.2.0 begins its jobs after it has ended the query that they belong to, and
    # so keeps them, with all that they refer to, as long as the driver lives. An ingest does this once a batch.
    for row in text.rdd.toLocalIterator():
        yield row.line


def _window_start() -> Column:
    return F.date_format(F.timestamp_millis("window_ms"), "yyyy-MM-dd HH:mm:ss'+00'")


def _value(rows: DataFrame, name: str) -> Column:
    text = F.col(name).cast("string")
    if isinstance(rows.schema[name].dataType, StringType):
        for plain, written in _ESCAPES:
            text = F.replace(text, F.lit(plain), F.lit(written))
    elif isinstance(rows.schema[name].dataType, TimestampType):
        text = F.concat(text, F.lit("+00"))  # the session's zone is UTC, PostgreSQL's may be another
    return F.coalesce(text, F.lit("\\N"))
