"""Aggregated rows as lines of PostgreSQL's COPY text format, made by tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from onceover.lines.escapes import ESCAPES

_LINE: Final = pa.schema([("line", pa.string())])
_MOMENT: Final = "%Y-%m-%d %H:%M:%S+00"


def format_rows(rows: pa.Table) -> bytes:
    """Return a line a row, each with its newline: `window_ms` as a timestamptz, then the other columns, of a contract's
    types, in their order."""
    window = pc.strftime(rows.column("window_ms").cast(pa.timestamp("ms")).cast(pa.timestamp("s")), _MOMENT)
    texts = [window, *(_format_column(rows.column(name)) for name in rows.column_names if name != "window_ms")]
    lines = pc.binary_join_element_wise(*texts, "\t", null_handling="replace", null_replacement="\\N")
    return "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def format_copy_lines(aggregated: DataFrame, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of `window_ms` and the named columns, without their ends.

    The driver never holds more than one Spark partition of aggregated rows.
    """
    text = aggregated.select("window_ms", *names).mapInArrow(_format_batches, "line string")
    # Not DataFrame.toLocalIterator: Spark 4.2.0 starts its jobs after the end of their query, and so keeps the jobs and
    # all that they refer to until the driver ends: in ingest, a leak with each batch.
    for row in text.rdd.toLocalIterator():
        yield row.line


def _format_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        lines = format_rows(pa.Table.from_batches([batch])).decode().split("\n")[:-1]
        yield pa.RecordBatch.from_pydict({"line": lines}, _LINE)


def _format_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type != pa.string():
        return pc.cast(column, pa.string())
    for plain, written in ESCAPES:
        column = pc.replace_substring(column, plain, written)
    return column
