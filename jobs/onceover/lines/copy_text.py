"""Aggregated rows as lines of PostgreSQL's COPY text format."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from onceover.lines.escapes import ESCAPES

_MOMENT: Final = "%Y-%m-%d %H:%M:%S+00"


def format_rows(rows: pa.Table) -> bytes:
    """Return a line a row, each with its newline: `window_ms` as a timestamptz, then the other columns, of a contract's
    types, in their order."""
    window = pc.strftime(rows.column("window_ms").cast(pa.timestamp("ms")).cast(pa.timestamp("s")), _MOMENT)
    texts = [window, *(_format_column(rows.column(name)) for name in rows.column_names if name != "window_ms")]
    lines = pc.binary_join_element_wise(*texts, "\t", null_handling="replace", null_replacement="\\N")
    return "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def _format_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type == pa.binary():
        return pa.chunked_array([pa.array([bits and f"x{bits.hex()}" for bits in column.to_pylist()], pa.string())])
    if column.type != pa.string():
        return pc.cast(column, pa.string())
    for plain, written in ESCAPES:
        column = pc.replace_substring(column, plain, written)
    return column
