"""Kafka's messages as an Arrow batch of records."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message

from onceover.errors import UnreadableRecordError
from onceover.kafka.headers import read_headers
from onceover.model.record import LARGEST_RECORD

SCHEMA = pa.schema(
    [
        ("kafka_partition", pa.int32()),
        ("offset", pa.int64()),
        ("kafka_timestamp", pa.int64()),
        ("key", pa.binary()),
        ("headers", pa.binary()),
        ("value", pa.binary()),
        ("leader_epoch", pa.int32()),
    ]
)


def build_batch(records: list[Message], kafka_partition: int, where: str) -> pa.RecordBatch:
    """Return these records, at least one, in the columns of SCHEMA. Raises UnreadableRecordError for the first that is
    larger than raw takes: no reader of raw would read it."""
    batch = pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(kafka_partition, pa.int32()), len(records)),
            pa.array(list(map(Message.offset, records)), pa.int64()),
            pa.array([stamp for _, stamp in map(Message.timestamp, records)], pa.int64()),
            pa.array(list(map(Message.key, records)), pa.binary()),
            pa.array(read_headers(records), pa.binary()),
            pa.array(list(map(Message.value, records)), pa.binary()),
            pa.array(list(map(Message.leader_epoch, records)), pa.int32()),
        ],
        schema=SCHEMA,
    )
    if batch.nbytes > LARGEST_RECORD:
        _refuse_large(batch, where)
    return batch


def _refuse_large(batch: pa.RecordBatch, where: str) -> None:
    sizes = sum(pc.binary_length(batch.column(name)).fill_null(0).to_numpy() for name in ("key", "headers", "value"))
    for at in (sizes > LARGEST_RECORD).nonzero()[0].tolist():
        offset = cast(int, batch.column("offset")[at].as_py())
        raise UnreadableRecordError(
            f"{where}: the record at offset {offset} has {sizes[at]:,} bytes, and raw takes at most "
            f"{LARGEST_RECORD:,}; limit the topic's max.message.bytes",
            offset,
        )
