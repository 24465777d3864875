"""Batches of Kafka as no producer's library makes them, sent as they are: for the broker they are sound."""

from __future__ import annotations

import socket
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import xxhash
import zstandard

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""By their number in a batch's attributes."""
NOON_MS: Final = 1_772_366_400_000
_PRODUCE: Final = 0
_VERSION: Final = 7  # the first that takes zstd
_PIECE: Final = 1 << 22
_NOT_LED: Final = (3, 6)  # unknown topic or partition, not the leader
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""Of a batch: first offset, length, leader epoch, magic, CRC, attributes, last offset's delta, first and newest
timestamp, producer's ID, epoch and sequence, records."""
_CHECKED: Final = 21
"""The bytes of a batch from here on are those that its CRC covers."""


class RawRecord(NamedTuple):
    """One record as a batch holds it: a header's name is any bytes."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    timestamp: int = NOON_MS


class RefusedBatchError(Exception):
    """The broker takes no such batch; `code` is Kafka's."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the broker refused the batch with error {code}")
        self.code = code


def encode_records(records: Sequence[RawRecord]) -> bytes:
    """Return a batch's records before they are compressed."""
    return b"".join(_encode(record, number, records[0].timestamp) for number, record in enumerate(records))


def compress(codec: str, data: bytes) -> bytes:
    """Return the data as that codec packs it, by a library that is not the client's."""
    if codec == "none":
        return data
    if codec == "lz4":
        packer = _Lz4()
        return packer.compress(data) + packer.flush()
    return bytes(pa.compress(data, codec=codec, asbytes=True))


def make_batch(records: Sequence[RawRecord], codec: str = "none") -> bytes:
    """Return a sound batch of these records, at least one."""
    stamps = [record.timestamp for record in records]
    return frame(compress(codec, encode_records(records)), codec, len(records), stamps[0], max(stamps))


def frame(packed: bytes, codec: str, records: int, first_ms: int = NOON_MS, newest_ms: int = NOON_MS) -> bytes:
    """Return the batch with that compressed body: its CRC is right, whatever the body holds."""
    fields = (CODECS.index(codec), records - 1, first_ms, newest_ms, -1, -1, -1, records)
    size = HEADER.size - 12 + len(packed)
    return seal(HEADER.pack(0, size, -1, 2, 0, *fields) + packed)


def seal(batch: bytes) -> bytes:
    """Return the batch with the right CRC."""
    return batch[: _CHECKED - 4] + struct.pack(">I", _crc32c(batch[_CHECKED:])) + batch[_CHECKED:]


def split_gzip(records: Sequence[RawRecord], at: int) -> bytes:
    """Return a batch whose gzip body has two members, as RFC 1952 allows, the second from that byte of the records on.
    The broker reads both; the client reads the first, and fetches the batch again and again if it ends in a record."""
    plain = encode_records(records)
    return frame(compress("gzip", plain[:at]) + compress("gzip", plain[at:]), "gzip", len(records))


def produce_bomb(address: str, topic: str, kafka_partition: int, size: int, records: int = 1) -> int:
    """Produce a bomb of gzip. Return the first offset."""
    return send(address, topic, kafka_partition, make_bomb(size, records))


def make_bomb(size: int, records: int = 1, codec: str = "gzip") -> bytes:
    """Return a batch of so many records, each with a value of `size` zeros, which gzip makes a thousandth of."""
    packer, packed = _PACKERS[codec](), bytearray()
    for number in range(records):
        body = b"\0" + varint(0) + varint(number) + varint(-1) + varint(size)
        packed += packer.compress(varint(len(body) + size + 1) + body)
        for start in range(0, size, _PIECE):
            packed += packer.compress(bytes(min(_PIECE, size - start)))
        packed += packer.compress(varint(0))
    packed += packer.flush()
    return frame(bytes(packed), codec, records)


def send(address: str, topic: str, kafka_partition: int, batch: bytes) -> int:
    """Produce a batch and return its first offset. Raise RefusedBatchError if the broker does not take it; a new topic
    may not be led yet."""
    deadline = time.monotonic() + 20
    while True:
        error, offset = _send_once(address, topic, kafka_partition, batch)
        if not error:
            return offset
        if error not in _NOT_LED or time.monotonic() > deadline:
            raise RefusedBatchError(error)
        time.sleep(0.05)


def _send_once(address: str, topic: str, kafka_partition: int, batch: bytes) -> tuple[int, int]:
    """Return the broker's error, 0 for none, and the first offset."""
    host, port = address.split(":")
    name = topic.encode()
    body = struct.pack(">hhihhhii", _PRODUCE, _VERSION, 1, -1, -1, -1, 60_000, 1)
    body += struct.pack(">h", len(name)) + name + struct.pack(">iii", 1, kafka_partition, len(batch)) + batch
    with socket.create_connection((host, int(port)), 60) as broker:
        broker.sendall(struct.pack(">i", len(body)) + body)
        (length,) = struct.unpack(">i", _receive(broker, 4))
        answer = _receive(broker, length)
    error, offset = struct.unpack_from(">hq", answer, 4 + 4 + 2 + len(name) + 4 + 4)
    return int(error), int(offset)


def varint(number: int) -> bytes:
    """Return a signed number of at most 64 bits as Kafka writes it."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])


class _Lz4:
    """A frame of independent blocks, the only ones that the broker takes; Arrow's depend on each other."""

    def __init__(self) -> None:
        options = b"\x60\x70"  # version 1, independent, no checksums, blocks of up to 4 MiB
        self._head = b"\x04\x22\x4d\x18" + options + bytes([xxhash.xxh32_intdigest(options) >> 8 & 255])

    def compress(self, data: bytes) -> bytes:
        out, self._head = self._head, b""
        for start in range(0, len(data), _PIECE):
            block = data[start : start + _PIECE]
            packed = bytes(pa.compress(block, codec="lz4_raw", asbytes=True))
            is_longer = len(packed) >= len(block)
            out += struct.pack("<I", len(block) | 1 << 31 if is_longer else len(packed))
            out += block if is_longer else packed
        return out

    def flush(self) -> bytes:
        return self._head + bytes(4)


def _encode(record: RawRecord, number: int, first_ms: int) -> bytes:
    delta = (record.timestamp - first_ms + (1 << 63)) % (1 << 64) - (1 << 63)  # wraps, as in Java
    body = b"\0" + varint(delta) + varint(number)
    body += _sized(record.key) + _sized(record.value) + varint(len(record.headers))
    body += b"".join(_sized(part) for header in record.headers for part in header)
    return varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def _receive(broker: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = broker.recv(length - len(data))
        assert piece, "the broker hung up"
        data += piece
    return data


def _crc32c(data: bytes) -> int:
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum = _TABLE[(checksum ^ byte) & 255] ^ (checksum >> 8)
    return checksum ^ 0xFFFFFFFF


def _make_entry(number: int) -> int:
    for _ in range(8):
        number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
    return number


_TABLE: Final = tuple(map(_make_entry, range(256)))
_PACKERS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.compressobj(1, zlib.DEFLATED, 31),
    "lz4": _Lz4,
    "zstd": lambda: zstandard.ZstdCompressor(level=1).compressobj(),
}
