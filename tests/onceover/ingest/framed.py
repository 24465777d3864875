"""Interpreted records as Spark hands them to the tasks of a batch, and a framing of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from onceover.ingest.framing import SHARD_END, SUM_FIELDS, Framing
from onceover.kafka.shard_read import ShardRead
from onceover.lines.grouping import Grouping
from onceover.lines.line_format import Line, compute_digest, encode, encode_content
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record
from onceover.model.windowing import Windowing

GENERATION, CONTRACT, HOUR_MS = "00c0ffee", "V1-00c0ffee00c0ffee", 3_600_000
GROUPING = Grouping(
    {"m_events": "sum", "m_amount": "sum"},
    pa.schema([("window_ms", pa.int64()), ("k_kind", pa.string()), ("m_events", pa.int64()), ("m_amount", pa.int64())]),
)
FRAMING = Framing(
    CONTRACT,
    Windowing(60).pieces,
    {name: name for name in ("k_kind", "m_events", "m_amount")},
    GROUPING,
    most_windows=100,
)
_SCHEMA = pa.schema(
    dict.fromkeys(("kafka_partition", "leader_epoch", "m_events"), pa.int32())
    | dict.fromkeys(("head", "value"), pa.binary())
    | dict.fromkeys(("event_ms", "m_amount"), pa.int64())
    | dict.fromkeys(("reason", "k_kind"), pa.string())
)


def record(
    offset: int, hour: int, minute: int = 0, kafka_partition: int = 0, kind: str | None = "a", amount: int = 1
) -> dict[str, Any]:
    """Return a record of that hour since 1970."""
    head, value = _split_content(kafka_partition, offset)
    counted = {"event_ms": hour * HOUR_MS + minute * 60_000, "k_kind": kind, "m_events": 1, "m_amount": amount}
    return {"window_ms": hour * HOUR_MS, "kafka_partition": kafka_partition, "offset": offset,
            "leader_epoch": offset % 5, "head": head, "value": value, **counted}  # fmt: skip


def quarantined(offset: int, reason: str = "tombstone") -> dict[str, Any]:
    head, value = _split_content(0, offset)
    return {"window_ms": -1, "kafka_partition": 0, "offset": offset, "head": head, "value": value, "reason": reason}


def shard_end(read: ShardRead) -> dict[str, Any]:
    return {"kafka_partition": read.kafka_partition, "head": read.as_bytes(), "event_ms": SHARD_END,
            "reason": "tombstone"}  # fmt: skip


def make_batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{name: row.get(name) for name in _SCHEMA.names} for row in rows], schema=_SCHEMA)


def _split_content(kafka_partition: int, offset: int) -> tuple[bytes, bytes | None]:
    made = _make_record(kafka_partition, offset)
    return encode_content(made).rpartition(b"\t")[0], made.value


def _make_record(kafka_partition: int, offset: int) -> Record:
    return Record(KafkaPartition(GENERATION, kafka_partition), offset, 7, None, (), b"v\t%d" % offset)


def encode_row(row: Mapping[str, Any]) -> bytes:
    """Return the row's line by the one-record reference, and its newline."""
    content = _make_record(row["kafka_partition"], row["offset"])
    texts = [row.get(name) for name in ("k_kind", "m_events", "m_amount")] if "event_ms" in row else [row["reason"]]
    columns = tuple(None if text is None else str(text).encode() for text in texts)
    return encode(Line(content, row.get("event_ms"), CONTRACT, columns, row.get("leader_epoch"))) + b"\n"


def compute_sums(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, Digest, int]]:
    """Return Kafka partition, digest and newest event time of these rows, by the one-record reference."""
    found = []
    for source in sorted({row["kafka_partition"] for row in rows}):
        own = [row for row in rows if row["kafka_partition"] == source]
        contents = [_make_record(source, row["offset"]) for row in own]
        found.append((source, compute_digest(contents), max(row.get("event_ms", -1) for row in own)))
    return found


def read_sums(sums: bytes) -> list[tuple[int, Digest, int]]:
    """Return the same of a piece's sums."""
    return [(int(n), Digest(*map(int, digest)), int(newest)) for n, *digest, newest in
            np.frombuffer(sums, np.int64).reshape(-1, SUM_FIELDS)]  # fmt: skip
