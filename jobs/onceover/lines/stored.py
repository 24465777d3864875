"""Lines restored from Parquet by their fields and hashes: what each adds to a digest, and whether it is intact."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from onceover.lines.frame import (
    add_value,
    format_event_time,
    hash_content,
    hash_lines,
    join_content,
    join_fields,
    join_head,
)

_DIGITS = 8


def restore(records: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each of these records gives its `hash`, and what each adds to a digest (n x 4, uint64).

    Takes what `frame` does, and generation (8 characters), contract, columns (a line's columns as it holds them) and
    hash (its XXH3-64 as a signed integer).
    """
    rows = records.num_rows
    if rows == 0:
        return np.zeros(0, bool), np.zeros((0, 4), np.uint64)
    content = join_content(records, _read_generations(records))
    contract, columns = (records.column(name).cast(pa.binary()) for name in ("contract", "columns"))
    hashes = hash_lines(join_fields(content, format_event_time(records.column("event_ms")), contract, columns))
    return hashes.view(np.int64) == records.column("hash").to_numpy(), hash_content(content)


def hash_records(records: pa.RecordBatch, generation: str) -> np.ndarray:
    """Return what each of these records of one generation adds to a digest (n x 4, uint64)."""
    if records.num_rows == 0:
        return np.zeros((0, 4), np.uint64)
    return hash_content(add_value(write_head(records, generation), records.column("value")))


def write_head(records: pa.RecordBatch, generation: str) -> pa.Array:
    """Return the bytes before VALUE of each of these records of one generation."""
    if records.num_rows == 0:
        return pa.array([], pa.binary())
    return join_head(records, np.frombuffer(generation.encode(), np.uint8))


def _read_generations(records: pa.RecordBatch) -> np.ndarray:
    names = records.column("generation").cast(pa.string())
    return np.frombuffer("".join(names.to_pylist()).encode(), np.uint8).reshape(-1, _DIGITS)
