"""A line's columns as typed Arrow arrays, for lines of one contract."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from onceover.lines.escapes import UNESCAPES
from onceover.lines.read import Lines
from onceover.lines.views import view_stretches

_TEXT = csv.ParseOptions(delimiter="\t", quote_char=False, escape_char=False, ignore_empty_lines=False)


def read_columns(lines: Lines, rows: np.ndarray, types: Mapping[str, pa.DataType]) -> pa.Table | None:
    """Return the columns of these rows, in their order; None if any of them does not hold columns of these types.

    `rows` index intact lines that have one contract, whose columns have these names and `types`; a timestamp's type has
    no zone, its text is UTC. None says that the contract must be evaluated over the value of each line: some columns
    were left out, or Onceover did not write these bytes.
    """
    if not len(rows) or (lines.columns[rows] != len(types)).any():
        return None
    text = _copy(lines, rows)
    if b"\r" in text:
        return None
    try:
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=list(types)),
            parse_options=_TEXT,
            convert_options=csv.ConvertOptions(column_types=types, null_values=[r"\N"], strings_can_be_null=True),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(rows):
        return None
    if b"\\" in text:
        table = pa.table({name: _unescape(table.column(name)) for name in types})
    return table


def _copy(lines: Lines, rows: np.ndarray) -> bytearray:
    """Return the columns of these rows, each with a newline."""
    start, after = lines.columns_start[rows], lines.columns_end[rows] + 1
    joined = view_stretches(lines.data, start, after).cast(pa.binary()).buffers()[2]
    ends = np.cumsum(after - start)
    text = bytearray(memoryview(joined)[: ends[-1]])
    np.frombuffer(text, np.uint8)[ends - 1] = ord("\n")  # in place of the TAB before the hash
    return text


def _unescape(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type != pa.string():
        return column
    for written, plain in UNESCAPES:
        column = pc.replace_substring(column, written, plain)
    return column
