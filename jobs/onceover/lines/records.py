"""The Kafka record of a line, as it was."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onceover.lines.escapes import NULL, UNESCAPES
from onceover.lines.line_format import KAFKA_TIMESTAMP
from onceover.lines.read import Lines

SCHEMA = pa.schema(
    [
        ("kafka_timestamp", pa.int64()),
        ("key", pa.binary()),
        ("headers", pa.binary()),
        ("value", pa.binary()),
    ]
)


def read_records(lines: Lines, rows: np.ndarray) -> pa.Table:
    """Return the records of these rows, which are intact lines, in their order; headers stay escaped."""
    data, start = lines.data, lines.start[rows]
    tabs = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\t"))
    first = np.searchsorted(tabs, start)
    key, headers, value = ([] if not len(rows) else tabs[first + n] + 1 for n in range(3))
    stamps = [int(bytes(data[at + KAFKA_TIMESTAMP.start : at + KAFKA_TIMESTAMP.stop])) for at in start.tolist()]
    return pa.table(
        [
            pa.array(stamps, pa.int64()),
            _unescape(_slice(data, key, headers)),
            _slice(data, headers, value),
            _unescape(_slice(data, value, lines.content_end[rows] + 1)),
        ],
        schema=SCHEMA,
    )


def _slice(data: memoryview, start: np.ndarray, after: np.ndarray) -> pa.Array:
    """Return the fields that begin at `start`, the next field of each beginning `after` it."""
    bounds = zip(np.asarray(start).tolist(), (np.asarray(after) - 1).tolist(), strict=True)
    return pa.array([bytes(data[a:b]) for a, b in bounds], pa.binary())


def _unescape(field: pa.Array) -> pa.Array:
    is_null = pc.equal(field, pa.scalar(NULL, pa.binary()))
    for written, plain in UNESCAPES:
        field = pc.replace_substring(field, written, plain)
    return pc.if_else(is_null, pa.scalar(None, pa.binary()), field)
