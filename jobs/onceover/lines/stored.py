"""Records stored as Parquet: the lines that they were, and what each adds to a digest."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onceover.errors import UsageError
from onceover.lines.frame import (
    add_value,
    as_binary,
    format_hash,
    format_time_and_epoch,
    get_data,
    hash_content,
    hash_lines,
    join_content,
    join_fields,
    join_head,
)

SCHEMA: Final = pa.schema(
    [
        ("generation", pa.string()),
        ("kafka_partition", pa.int32()),
        ("offset", pa.int64()),
        ("event_ms", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("kafka_timestamp", pa.int64()),
        ("key", pa.binary()),
        ("headers", pa.binary()),
        ("value", pa.binary()),
        ("contract", pa.string()),
        ("columns", pa.binary()),  # as the line holds them: escaped, with TABs between them
        ("hash", pa.int64()),  # the line's XXH3-64, with a sign
    ]
)
"""The columns of a Parquet file. Only key, value and leader epoch may be null."""

_NULLABLE = ("key", "headers", "value", "leader_epoch")
_DIGITS = 8


def frame_stored(records: pa.RecordBatch) -> memoryview:
    """Return the lines of these records, which have the columns of SCHEMA, each with its newline and the hash that was
    stored: `read` compares it. Raise UsageError for values that no line has."""
    if records.num_rows == 0:
        return memoryview(b"")
    records = records.select(SCHEMA.names).cast(SCHEMA)
    for name in SCHEMA.names:
        if name not in _NULLABLE and records.column(name).null_count:
            raise UsageError(f"column `{name}` has nulls")
    hashes = records.column("hash").to_numpy().view(np.uint64)
    _, body = _join_body(records)
    text = get_data(join_fields(body, as_binary(format_hash(hashes))))
    if pc.sum(pc.count_substring(body, b"\n")).as_py():
        raise UsageError("a field has a newline")
    return text


def restore(records: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each of these records, which have the columns of SCHEMA, gives its hash, and what each adds to a
    digest (n x 4, uint64)."""
    if records.num_rows == 0:
        return np.zeros(0, bool), np.zeros((0, 4), np.uint64)
    content, body = _join_body(records)
    return hash_lines(body).view(np.int64) == records.column("hash").to_numpy(), hash_content(content)


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


def _join_body(records: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Return the lines' contents, and the lines before the TAB of the hash."""
    content = join_content(records, _read_generations(records.column("generation").cast(pa.binary())))
    contract, columns = (records.column(name).cast(pa.binary()) for name in ("contract", "columns"))
    times = format_time_and_epoch(records.column("event_ms"), records.column("leader_epoch"))
    return content, join_fields(content, times, contract, columns)


def _read_generations(names: pa.Array) -> np.ndarray:
    if pc.any(pc.not_equal(pc.binary_length(names), _DIGITS)).as_py():
        raise UsageError(f"a generation has not {_DIGITS} digits")
    return np.frombuffer(get_data(names), np.uint8).reshape(-1, _DIGITS)
