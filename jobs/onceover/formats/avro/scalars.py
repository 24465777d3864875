"""What reads one type of all values of a batch: `read` returns an Arrow array of the reader's type, `skip` nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onceover.formats.avro.cursor import Cursor

_DECIMAL_BYTES: Final = 16


class TypeReader(Protocol):
    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array: ...
    def skip(self, cursor: Cursor, rows: np.ndarray) -> None: ...


@dataclass(frozen=True, slots=True)
class Nulls:
    type: pa.DataType

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        return pa.nulls(len(rows), self.type)

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        """Take no byte."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A default, which takes no byte; `value` has it once."""

    value: pa.Array

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        return self.value.take(pa.array(np.zeros(len(rows), np.int64)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A branch of a union that the reader's type does not take."""

    type: pa.DataType
    why: str

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        self.skip(cursor, rows)
        return pa.nulls(len(rows), self.type)

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        cursor.refuse(rows, self.why)


@dataclass(frozen=True, slots=True)
class Number:
    """An int or a long of `least` to `most`, times `factor`."""

    type: pa.DataType
    path: str
    least: int
    most: int
    factor: int = 1

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        value = cursor.read_longs(rows)
        if (beyond := (value < self.least) | (value > self.most)).any():
            cursor.refuse(rows[beyond], f"field {self.path}: out of range")
            value[beyond] = 0
        if pa.types.is_floating(self.type):
            return pa.array(value.astype(self.type.to_pandas_dtype()), self.type)
        width = np.int32 if self.type.bit_width == 32 else np.int64
        return pa.array((value * self.factor).astype(width)).view(self.type)

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        cursor.read_longs(rows)


@dataclass(frozen=True, slots=True)
class Float:
    """A float or a double of so many bytes."""

    type: pa.DataType
    width: int

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        value = np.ascontiguousarray(cursor.take_bytes(rows, self.width)).view(f"<f{self.width}").ravel()
        return pa.array(value.astype(self.type.to_pandas_dtype(), copy=False), self.type)

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        cursor.take(rows, self.width)


@dataclass(frozen=True, slots=True)
class Boolean:
    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        value = cursor.take_bytes(rows, 1).ravel()
        cursor.refuse(rows[value > 1], "Avro with a boolean that is neither 0 nor 1")
        return pa.array(value == 1)

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        self.read(cursor, rows)


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes or a string, of the length before them, or fixed."""

    type: pa.DataType
    path: str
    width: int | None = None

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        found = cursor.slice(*self._take(cursor, rows))
        if self.type == pa.binary():
            return found
        try:
            return found.cast(self.type)
        except pa.ArrowInvalid:
            is_text = np.array([_is_utf8(value) for value in found.to_pylist()])
            cursor.refuse(rows[~is_text], f"field {self.path}: not UTF-8")
            return pc.if_else(pa.array(is_text), found, b"").cast(self.type)

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        self._take(cursor, rows)

    def _take(self, cursor: Cursor, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return cursor.take(rows, cursor.read_longs(rows) if self.width is None else self.width)


@dataclass(frozen=True, slots=True)
class Decimal:
    """The big-endian bytes of an integer, of the length before them, or fixed."""

    type: pa.Decimal128Type
    path: str
    width: int | None = None

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        starts, ends = cursor.take(rows, cursor.read_longs(rows) if self.width is None else self.width)
        lengths = ends - starts
        sign = np.where(cursor.data[starts] >= 0x80, 0xFF, 0).astype(np.uint8)[:, None]
        digits = np.repeat(sign, _DECIMAL_BYTES, axis=1)
        place = np.arange(min(lengths.max(initial=0), _DECIMAL_BYTES))  # 0 is the lowest byte
        at = np.maximum(ends[:, None] - 1 - place, 0)
        digits[:, : len(place)] = np.where(place < lengths[:, None], cursor.data[at], sign)
        # Numbers of so many bytes always fit; those of more are few, and are looked at one by one.
        fitting = len(f"{10**self.type.precision - 1:b}") // 8
        is_short = (digits[:, fitting:] == sign).all(1) & (lengths <= _DECIMAL_BYTES)
        is_short &= (digits[:, fitting - 1] >= 0x80) == (sign[:, 0] != 0) if fitting else False
        fits = np.ones(len(rows), bool)
        for row in np.flatnonzero(~is_short).tolist():
            number = int.from_bytes(cursor.data[starts[row] : ends[row]].tobytes(), signed=True)
            fits[row] = abs(number) < 10**self.type.precision
        fits &= lengths > 0
        cursor.refuse(rows[~fits], f"field {self.path}: not 1 to {self.type.precision} digits")
        digits[~fits] = 0
        return pa.Array.from_buffers(self.type, len(rows), [None, pa.py_buffer(np.ascontiguousarray(digits))])

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        raise NotImplementedError("a decimal is skipped as bytes")


@dataclass(frozen=True, slots=True)
class Enum:
    """The reader's symbol of each of the writer's; None of one that the reader does not take."""

    symbols: Sequence[str | None]
    path: str

    def read(self, cursor: Cursor, rows: np.ndarray) -> pa.Array:
        number = self._read_numbers(cursor, rows)
        known = np.array([symbol is not None for symbol in self.symbols])
        cursor.refuse(rows[~known[number]], f"field {self.path}: a symbol that the reader's enum lacks")
        return pa.array(self.symbols, pa.string()).take(pa.array(number))

    def skip(self, cursor: Cursor, rows: np.ndarray) -> None:
        self._read_numbers(cursor, rows)

    def _read_numbers(self, cursor: Cursor, rows: np.ndarray) -> np.ndarray:
        return cursor.read_choice(rows, len(self.symbols), "Avro with a number beyond an enum's symbols")


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
