"""Logical types: decimals of all sizes, and times as the moments that fastavro makes of them."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.onceover.formats.avro.decoding import make_decimal
from tests.onceover.formats.avro.encoding import encode_bytes, encode_long
from tests.onceover.formats.avro.reading import read
from tests.onceover.formats.avro.resolving import make_one, read_with_fastavro

from onceover.formats.avro.values import AvroReader


def read_one_field(values: list[bytes], schema: str) -> list[Any]:
    return [row["v"] for row in read_with_fastavro(values, schema, schema)]


def list_digits(precision: int) -> list[int]:
    chance = random.Random(precision)
    most = 10**precision - 1
    edges = [sign * (1 << bits) + more for bits in range(precision * 3) for sign in (1, -1) for more in (-1, 0, 1)]
    drawn = [chance.randint(-most, most) for _ in range(20)]
    return [digits for digits in [0, most, -most, *edges, *drawn] if abs(digits) <= most]


@pytest.mark.parametrize("precision", range(1, 39))
def test_decimal_of_bytes_equals_that_of_fastavro(precision: int) -> None:
    for scale in {0, precision // 2, precision}:
        kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        digits = list_digits(precision)
        least = [encode_bytes(each.to_bytes((each.bit_length() + 8) // 8, signed=True)) for each in digits]
        padded = [encode_bytes(each.to_bytes(size, signed=True)) for each in digits for size in (17, 40)]

        rows, reasons = read(least + padded, make_one(kind))

        assert reasons == [None] * len(rows)
        assert [row["v"] for row in rows] == read_one_field(least + padded, make_one(kind))
        assert [row["v"] for row in rows[: len(digits)]] == [make_decimal(each, scale) for each in digits]


@pytest.mark.parametrize("precision", range(1, 39))
def test_decimal_of_fixed_equals_that_of_fastavro(precision: int) -> None:
    size = ((10**precision - 1).bit_length() + 8) // 8
    for width in (size, size + 1, 16, 30):
        kind: Any = {"type": "fixed", "name": "F", "size": width, "logicalType": "decimal", "precision": precision}
        values = [each.to_bytes(width, signed=True) for each in list_digits(precision)]

        rows, reasons = read(values, make_one(kind))

        assert reasons == [None] * len(rows)
        assert [row["v"] for row in rows] == read_one_field(values, make_one(kind))


@pytest.mark.parametrize("precision", range(1, 39))
def test_decimal_of_too_many_digits_is_refused(precision: int) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 0}
    most = 10**precision - 1
    digits = [most, most + 1, -most, -most - 1, most + 2, 1 << 127, -(1 << 127), 1 << 128, -(1 << 200)]
    values = [encode_bytes(each.to_bytes((each.bit_length() + 8) // 8, signed=True)) for each in digits]

    rows, reasons = read(values, make_one(kind))

    assert [row and row["v"] for row in rows] == [Decimal(each) if abs(each) <= most else None for each in digits]
    assert reasons == [None if abs(each) <= most else f"field v: not 1 to {precision} digits" for each in digits]


@pytest.mark.parametrize(
    ("kind", "logical", "numbers"),
    [
        ("int", "date", [0, -1, 20_000, -719_162, 2_932_896]),
        ("long", "timestamp-millis", [0, -1, 1, -62_135_596_800_000, 253_402_300_799_999]),
        ("long", "timestamp-micros", [0, -1, 1, -62_135_596_800_000_000, 253_402_300_799_999_999]),
        ("long", "local-timestamp-millis", [0, -1, 1, -62_135_596_800_000, 253_402_300_799_999]),
        ("long", "local-timestamp-micros", [0, -1, 1, -62_135_596_800_000_000, 253_402_300_799_999_999]),
    ],
)
def test_time_is_the_moment_of_fastavro(kind: str, logical: str, numbers: list[int]) -> None:
    schema = make_one({"type": kind, "logicalType": logical})
    values = list(map(encode_long, numbers))

    rows, faults = AvroReader(schema).read(pa.array(values, pa.binary()))

    assert faults.null_count == len(numbers)
    assert rows.field("v").to_pylist() == read_one_field(values, schema)


@pytest.mark.parametrize(
    ("kind", "logical", "ends", "type_"),
    [
        ("int", "date", (-(1 << 31), (1 << 31) - 1), pa.date32()),
        ("int", "time-millis", (-(1 << 31), (1 << 31) - 1), pa.int32()),
        ("long", "time-micros", (-(1 << 63), (1 << 63) - 1), pa.int64()),
        ("long", "timestamp-micros", (-(1 << 63), (1 << 63) - 1), pa.timestamp("us", "UTC")),
        ("long", "timestamp-nanos", (-(1 << 63), (1 << 63) - 1), pa.int64()),
        ("long", "local-timestamp-micros", (-(1 << 63), (1 << 63) - 1), pa.timestamp("us")),
        ("long", "local-timestamp-nanos", (-(1 << 63), (1 << 63) - 1), pa.int64()),
    ],
)
def test_ends_of_a_time_are_read(kind: str, logical: str, ends: tuple[int, ...], type_: pa.DataType) -> None:
    schema = make_one({"type": kind, "logicalType": logical})

    assert AvroReader(schema).type.field("v").type == type_
    assert read(list(map(encode_long, ends)), schema) == ([{"v": end} for end in ends], [None] * 2)


@pytest.mark.parametrize("logical", ["timestamp-millis", "local-timestamp-millis"])
def test_milliseconds_become_microseconds_to_their_ends(logical: str) -> None:
    ends = [9_223_372_036_854_775, -9_223_372_036_854_775, 9_223_372_036_854_776, -9_223_372_036_854_776]

    rows, reasons = read(list(map(encode_long, ends)), make_one({"type": "long", "logicalType": logical}))

    assert rows == [{"v": ends[0] * 1000}, {"v": ends[1] * 1000}, None, None]
    assert reasons == [None, None, "field v: out of range", "field v: out of range"]


def test_uuid_of_text_and_bytes_and_duration_stay_what_they_are() -> None:
    fixed = [{"type": "fixed", "name": n, "size": s, "logicalType": n} for n, s in (("uuid", 16), ("duration", 12))]
    kinds = [{"type": "string", "logicalType": "uuid"}, *fixed]
    fields = [{"name": name, "type": kind} for name, kind in zip("abc", kinds, strict=True)]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})

    rows, _ = read([encode_bytes(b"no uuid") + bytes(range(28))], schema)

    assert rows == [{"a": "no uuid", "b": bytes(range(16)), "c": bytes(range(16, 28))}]
