"""A strict decoder of Avro values, one by one: the oracle for which bytes are a value at all."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any

from tests.onceover.formats.avro.avro_kinds import AvroKind

MOST_ITEMS = 16_384


class NotAvroError(ValueError):
    """Bytes that are no value of the type."""


def decode(kind: AvroKind, data: bytes, left_out: Collection[str] = ()) -> dict[str, Any]:
    """Return the record of these bytes, without the fields that are left out: of those, only the bytes that say where
    they end count. Raises NotAvroError."""
    decoder = _Decoder(data)
    found = {}
    for name, inner in kind.fields:
        decoder.is_strict = name not in left_out
        value = decoder.read(inner)
        if name not in left_out:
            found[name] = value
    _check(decoder.at == len(data))
    return found


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self.is_strict = True
        self._items = 0

    def take(self, count: int) -> bytes:
        _check(0 <= count <= len(self._data) - self.at)
        self.at += count
        return self._data[self.at - count : self.at]

    def read_long(self) -> int:
        number = 0
        for place in range(10):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                _check(number < 1 << 64)
                return number >> 1 ^ -(number & 1)
        raise NotAvroError

    def read(self, kind: AvroKind) -> Any:
        if kind.logical == "decimal":
            return self._read_decimal(kind)
        return _READ[kind.kind](self, kind)

    def read_boolean(self) -> bool:
        byte = self.take(1)[0]
        _check(byte < 2)
        return byte == 1

    def read_number(self, kind: AvroKind) -> int:
        number = self.read_long()
        if self.is_strict and kind.logical in ("timestamp-millis", "local-timestamp-millis"):
            _check(abs(number) * 1000 < 1 << 63)
        elif self.is_strict and kind.kind == "int":
            _check(-(1 << 31) <= number < 1 << 31)
        return number

    def read_string(self) -> str:
        data = self.take(self.read_long())
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if self.is_strict:
                raise NotAvroError from error
            return ""

    def read_one_of(self, count: int) -> int:
        number = self.read_long()
        _check(0 <= number < count)
        return number

    def read_items(self, read_one: Callable[[], Any]) -> list[Any]:
        found = []
        while count := self.read_long():
            if count < 0:
                self.read_long()
                count = -count
            self._items += count
            _check(self._items <= MOST_ITEMS)
            found += [read_one() for _ in range(count)]
        return found

    def read_map(self, kind: AvroKind) -> dict[str, Any]:
        pairs = self.read_items(lambda: (self.read_string(), self.read(kind.inner[0])))
        _check(not self.is_strict or len(dict(pairs)) == len(pairs))
        return dict(pairs)

    def _read_decimal(self, kind: AvroKind) -> Decimal:
        data = self.take(kind.size if kind.kind == "fixed" else self.read_long())
        number = int.from_bytes(data, signed=True)
        _check(not self.is_strict or (len(data) > 0 and abs(number) < 10**kind.precision))
        return make_decimal(number, kind.scale)


_READ: dict[str, Callable[[_Decoder, AvroKind], Any]] = {
    "null": lambda decoder, kind: None,
    "boolean": lambda decoder, kind: decoder.read_boolean(),
    "int": _Decoder.read_number,
    "long": _Decoder.read_number,
    "float": lambda decoder, kind: struct.unpack("<f", decoder.take(4))[0],
    "double": lambda decoder, kind: struct.unpack("<d", decoder.take(8))[0],
    "bytes": lambda decoder, kind: decoder.take(decoder.read_long()),
    "string": lambda decoder, kind: decoder.read_string(),
    "fixed": lambda decoder, kind: decoder.take(kind.size),
    "enum": lambda decoder, kind: kind.symbols[decoder.read_one_of(len(kind.symbols))],
    "union": lambda decoder, kind: decoder.read(kind.inner[decoder.read_one_of(len(kind.inner))]),
    "array": lambda decoder, kind: decoder.read_items(lambda: decoder.read(kind.inner[0])),
    "map": _Decoder.read_map,
    "record": lambda decoder, kind: {name: decoder.read(inner) for name, inner in kind.fields},
}


def make_decimal(digits: int, scale: int) -> Decimal:
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


def _check(is_right: bool) -> None:
    if not is_right:
        raise NotAvroError
