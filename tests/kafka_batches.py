"""Batches of Kafka as no producer's library makes them, sent as they are: for the broker they are sound."""

from __future__ import annotations

import socket
import struct
import zlib
from typing import Final

_PRODUCE: Final = 0
_VERSION: Final = 3
_GZIP: Final = 1
_PIECE: Final = 1 << 24


def produce_bomb(address: str, topic: str, kafka_partition: int, size: int, records: int = 1) -> int:
    """Produce a batch of so many records, each with a value of `size` zeros, which gzip makes a thousandth of. Return
    the first offset."""
    deflate = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = bytearray()
    for number in range(records):
        body = b"\0" + _varint(0) + _varint(number) + _varint(-1) + _varint(size)
        packed += deflate.compress(_varint(len(body) + size + 1) + body)
        for start in range(0, size, _PIECE):
            packed += deflate.compress(bytes(min(_PIECE, size - start)))
        packed += deflate.compress(_varint(0))
    packed += deflate.flush()
    return _send(address, topic, kafka_partition, _make_batch(bytes(packed), records))


def _make_batch(packed: bytes, records: int) -> bytes:
    now_ms = 1_772_366_400_000
    content = struct.pack(">hiqqqhii", _GZIP, records - 1, now_ms, now_ms, -1, -1, -1, records) + packed
    checked = struct.pack(">ibI", -1, 2, _crc32c(content)) + content
    return struct.pack(">qi", 0, len(checked)) + checked


def _send(address: str, topic: str, kafka_partition: int, batch: bytes) -> int:
    host, port = address.split(":")
    name = topic.encode()
    body = struct.pack(">hhihhhii", _PRODUCE, _VERSION, 1, -1, -1, -1, 60_000, 1)
    body += struct.pack(">h", len(name)) + name + struct.pack(">iii", 1, kafka_partition, len(batch)) + batch
    with socket.create_connection((host, int(port)), 60) as broker:
        broker.sendall(struct.pack(">i", len(body)) + body)
        (length,) = struct.unpack(">i", _receive(broker, 4))
        answer = _receive(broker, length)
    error, offset = struct.unpack_from(">hq", answer, 4 + 4 + 2 + len(name) + 4 + 4)
    assert error == 0, f"the broker refused the batch with error {error}"
    return int(offset)


def _receive(broker: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = broker.recv(length - len(data))
        assert piece, "the broker hung up"
        data += piece
    return data


def _varint(number: int) -> bytes:
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])


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
