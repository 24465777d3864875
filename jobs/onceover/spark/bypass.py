"""What a record's line needs and the contract's SQL does not see goes past Spark's rows.

To make rows of it, and Arrow of the rows, takes Spark longer than to evaluate a contract. Rows of negative offsets,
which no record of Kafka has, carry it in one column: one of RECORDS_OFFSET comes before the records that it is of, and
one of END_OFFSET after a shard's, with its `ShardRead`. Rows of one Spark partition stay in their order, and offsets
tell that they did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onceover.errors import TransientError

BYPASS: Final = "bypass"
END_OFFSET: Final = -1
RECORDS_OFFSET: Final = -2
_PACKED: Final = pa.schema(
    [
        ("kafka_partition", pa.int32()),
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("content", pa.binary()),  # the bytes of the line that its digest covers
    ]
)


def pack(records: pa.RecordBatch, content: pa.Array) -> pa.Buffer:
    """Return what goes past Spark's rows of these records, of which each offset occurs once, in the reader's columns,
    and of their lines' `content`."""
    known = [records.column(name) for name in _PACKED.names[:-1]]
    return pa.RecordBatch.from_arrays([*known, content], schema=_PACKED).serialize()


def rejoin(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch | bytes]:
    """Yield the records of these batches, which have `offset` and BYPASS, with what was packed of them, and the words
    of each shard's end. Raises TransientError for a record that was not packed."""
    packed: pa.Buffer | None = None
    held: list[pa.RecordBatch] = []
    for batch in batches:
        bounds = [*np.flatnonzero(batch.column("offset").to_numpy() < 0).tolist(), len(batch)]
        held.append(batch.slice(0, bounds[0]))
        for at, until in pairwise(bounds):
            yield from _join(packed, held)
            text = batch.column(BYPASS)[at].as_buffer()
            is_end = batch.column("offset")[at].as_py() == END_OFFSET
            if is_end:
                yield text.to_pybytes()
            packed, held = None if is_end else text, [batch.slice(at + 1, until - at - 1)]
    yield from _join(packed, held)


def _join(packed: pa.Buffer | None, held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if not any(map(len, held)):
        return
    rows = pa.concat_batches(held)
    known = pa.ipc.read_record_batch(packed, _PACKED) if packed else pa.RecordBatch.from_pylist([], _PACKED)
    offsets = rows.column("offset")
    if not offsets.equals(known.column("offset")):  # a condition left some out
        at = pc.index_in(offsets, known.column("offset"))
        if at.null_count:
            raise TransientError("Spark parted records from their lines; the batch is read again")
        known = known.take(at)
    rows = rows.drop_columns(["offset", BYPASS])
    yield pa.RecordBatch.from_arrays([*known.columns, *rows.columns], [*known.schema.names, *rows.schema.names])
