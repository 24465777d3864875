"""Avro bytes of values, by the specification's section on the binary encoding, in any blocks."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.onceover.formats.avro.avro_kinds import AvroKind


class Chosen(NamedTuple):
    """A union's value: the number of its type, and the value of that."""

    number: int
    value: Any


def encode_long(number: int) -> bytes:
    left = ((number << 1) ^ (number >> 63)) & (1 << 64) - 1
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*encoded, left])


def encode_bytes(data: bytes) -> bytes:
    return encode_long(len(data)) + data


def encode(kind: AvroKind, value: Any, chance: random.Random | None = None) -> bytes:
    """Return the bytes of a value: a decimal as its digits, one integer; a union as Chosen. With `chance`, arrays and
    maps are in several blocks, some of which say their bytes, and decimals have more bytes than they need."""
    if kind.logical == "decimal":
        return _encode_decimal(kind, value, chance)
    if kind.kind == "null":
        return b""
    if kind.kind == "boolean":
        return bytes([value])
    if kind.kind in ("int", "long"):
        return encode_long(value)
    if kind.kind in ("float", "double"):
        return struct.pack("<f" if kind.kind == "float" else "<d", value)
    if kind.kind in ("bytes", "string"):
        return encode_bytes(value.encode() if kind.kind == "string" else value)
    if kind.kind == "fixed":
        return bytes(value)
    if kind.kind == "enum":
        return encode_long(kind.symbols.index(value))
    if kind.kind == "union":
        return encode_long(value.number) + encode(kind.inner[value.number], value.value, chance)
    if kind.kind == "record":
        return b"".join(encode(inner, value[name], chance) for name, inner in kind.fields)
    if kind.kind == "array":
        return encode_blocks([encode(kind.inner[0], item, chance) for item in value], chance)
    pairs = [encode_bytes(key.encode()) + encode(kind.inner[0], item, chance) for key, item in value.items()]
    return encode_blocks(pairs, chance)


def encode_blocks(items: Sequence[bytes], chance: random.Random | None = None) -> bytes:
    encoded, at = b"", 0
    while at < len(items):
        count = chance.randint(1, len(items) - at) if chance else len(items)
        block = b"".join(items[at : at + count])
        is_sized = chance is not None and chance.random() < 0.5
        encoded += encode_long(-count) + encode_long(len(block)) if is_sized else encode_long(count)
        encoded += block
        at += count
    return encoded + encode_long(0)


def _encode_decimal(kind: AvroKind, digits: int, chance: random.Random | None) -> bytes:
    if kind.kind == "fixed":
        return digits.to_bytes(kind.size, signed=True)
    least = ((digits if digits >= 0 else ~digits).bit_length() + 8) // 8
    return encode_bytes(digits.to_bytes(least + (chance.choice((0, 0, 1, 20)) if chance else 0), signed=True))
