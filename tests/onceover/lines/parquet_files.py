"""Lines stored as a Parquet file, as compaction stores them."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import parquet

from onceover.lines.escapes import unescape_nullable
from onceover.lines.reference import ID, KAFKA_TIMESTAMP, NO_LINE_EPOCH
from onceover.lines.stored import SCHEMA
from onceover.model.record import parse_id


def make_table(lines: Sequence[bytes]) -> pa.Table:
    """Return a row for each of these intact lines of a window."""
    return pa.Table.from_pylist([_make_row(line) for line in lines], SCHEMA)


def write_table(table: pa.Table, group: int = 1000) -> bytes:
    """Return a file whose row groups have so many rows."""
    sink = io.BytesIO()
    parquet.write_table(table, sink, row_group_size=group, compression="zstd", data_page_size=1000)
    return sink.getvalue()


def _make_row(line: bytes) -> dict[str, object]:
    prefix, key, headers, value, event_time, epoch, contract, *columns, digits = line.split(b"\t")
    source, offset = parse_id(prefix[ID])
    number = int(digits, 16)
    return {
        "generation": source.generation,
        "kafka_partition": source.kafka_partition,
        "offset": offset,
        "event_ms": int(event_time),
        "leader_epoch": None if epoch == NO_LINE_EPOCH else int(epoch),
        "kafka_timestamp": int(prefix[KAFKA_TIMESTAMP]),
        "key": unescape_nullable(key),
        "headers": headers,
        "value": unescape_nullable(value),
        "contract": contract.decode(),
        "columns": b"\t".join(columns),
        "hash": number - (1 << 64) if number >> 63 else number,
    }
