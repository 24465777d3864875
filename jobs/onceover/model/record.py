"""A Kafka record as raw keeps it, and the ID by which it counts once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from onceover.errors import UsageError
from onceover.model.offsets import LARGEST_END, KafkaPartition

GENERATION: Final = slice(0, 8)
KAFKA_PARTITION: Final = slice(9, 14)
OFFSET: Final = slice(15, 34)
ID_COLUMNS: Final = ("generation", "kafka_partition", "offset")
"""The columns of an ID, wherever records are rows."""
LARGEST_RECORD: Final = 32 * 1024 * 1024
"""Bytes of the key, the value and the escaped headers together, in what raw takes."""

Header = tuple[str | bytes, bytes | None]

_ID = re.compile(rb"[0-9a-f]{8}-[0-9]{5}-[0-9]{19}")


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record. `kafka_timestamp` is in ms; a header's name is bytes only where it is not valid UTF-8."""

    source: KafkaPartition
    offset: int
    kafka_timestamp: int
    key: bytes | None
    headers: tuple[Header, ...]
    value: bytes | None

    def __post_init__(self) -> None:
        if not 0 <= self.offset < LARGEST_END:
            raise UsageError(f"offset {self.offset} of {self.source} is not in 0..2^63-2")
        if not -(1 << 63) <= self.kafka_timestamp < 1 << 63:
            raise UsageError(f"Kafka timestamp {self.kafka_timestamp} of {self.source} is not a 64-bit integer")


def encode_id(source: KafkaPartition, offset: int) -> bytes:
    """Return the 34 bytes that identify a record."""
    return b"%b-%05d-%019d" % (source.generation.encode(), source.kafka_partition, offset)


def parse_id(data: bytes) -> tuple[KafkaPartition, int]:
    """Return Kafka partition and offset of an ID of 34 bytes. Raise UsageError for other bytes."""
    if not _ID.fullmatch(data):
        raise UsageError(f"{data[:60]!r} is not an ID; one looks like 00c0ffee-00003-0000000000000000042")
    return KafkaPartition(data[GENERATION].decode(), int(data[KAFKA_PARTITION])), int(data[OFFSET])
