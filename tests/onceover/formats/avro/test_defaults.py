"""Defaults of fields that a writer's schema lacks: of every type, and those that are none."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.onceover.formats.avro.reading import read
from tests.onceover.formats.avro.resolving import make_field, make_one, make_record, read_all, read_with_fastavro

DATE = {"type": "int", "logicalType": "date"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}
SMALL = {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}
FIXED_DECIMAL = FIXED | {"logicalType": "decimal", "precision": 4, "scale": 2}
NAMED = {"type": "record", "name": "N", "fields": [make_field("a", "int"), make_field("b", ["null", "string"], None)]}
LARGE = 12345678901234567890123456789012345678
LARGE_TEXT = LARGE.to_bytes(16).decode("latin-1")


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("boolean", True, True),
        ("int", -(1 << 31), -(1 << 31)),
        ("long", (1 << 63) - 1, (1 << 63) - 1),
        ("float", 1.5, 1.5),
        ("float", 1, 1.0),
        ("double", 1e300, 1e300),
        ("double", 10**20, 1e20),
        ("string", "ø漢", "ø漢"),
        ("string", "", ""),
        ("bytes", "\u00ff\u0000a", b"\xff\0a"),
        (FIXED, "\u00ff\u0001", b"\xff\1"),
        (ENUM, "B", "B"),
        (DATE, 20_000, 20_000),
        (MILLIS, -5, -5000),
        (MILLIS | {"logicalType": "local-timestamp-millis"}, 5, 5000),
        (MILLIS | {"logicalType": "timestamp-micros"}, 5, 5),
        (MILLIS | {"logicalType": "timestamp-nanos"}, 5, 5),
        ({"type": "string", "logicalType": "uuid"}, "u", "u"),
        (DECIMAL, LARGE_TEXT, Decimal((0, tuple(map(int, str(LARGE))), -10))),
        (SMALL, "\u00ff", Decimal("-0.1")),
        (FIXED_DECIMAL, "\u0001\u0000", Decimal("2.56")),
        (["null", "int"], None, None),
        (["int", "null"], 5, 5),
        (["null", "int"], 5, 5),
        (["null", DATE], 7, 7),
        ({"type": "array", "items": "int"}, [], []),
        ({"type": "array", "items": MILLIS}, [1, 2], [1000, 2000]),
        ({"type": "array", "items": ["null", "bytes"]}, [None, "a"], [None, b"a"]),
        ({"type": "map", "values": "long"}, {}, {}),
        ({"type": "map", "values": "bytes"}, {"k": "\u0080"}, {"k": b"\x80"}),
        (NAMED, {"a": 1}, {"a": 1, "b": None}),
        (NAMED, {"a": 1, "b": "x"}, {"a": 1, "b": "x"}),
        (["null", NAMED], None, None),
    ],
    ids=str,
)
def test_default_of_a_missing_field(kind: Any, default: Any, value: Any) -> None:
    reader = make_record(make_field("w", kind, default), make_field("v", "int"))

    rows, reasons = read([b"\2", b"\4", b"", None], reader, make_one("int"))

    assert rows == [{"w": value, "v": 1}, {"w": value, "v": 2}, None, None]
    assert reasons == [None, None, "Avro cut off", None]


@pytest.mark.parametrize(
    ("kind", "default", "name"),
    [
        ("boolean", 1, "boolean"),
        ("boolean", None, "boolean"),
        ("int", 1.5, "int"),
        ("int", True, "int"),
        ("int", "1", "int"),
        ("int", 1 << 31, "int"),
        ("long", 1 << 63, "long"),
        ("float", "1.5", "float"),
        ("double", True, "double"),
        ("double", 10**400, "double"),
        ("string", 5, "string"),
        ("string", None, "string"),
        ("string", "\ud800", "string"),
        ("bytes", "漢", "bytes"),
        ("bytes", 5, "bytes"),
        (FIXED, "a", "fixed F of 2 bytes"),
        (ENUM, "C", "enum E"),
        (DATE, 1 << 31, "date"),
        (MILLIS, 1 << 60, "timestamp-millis"),
        (SMALL, "\u0064", "decimal(2, 1)"),
        (["null", "int"], "x", "union of null and int"),
        (["int"], None, "union of int"),
        ({"type": "array", "items": "string"}, "abc", "array"),
        ({"type": "array", "items": "string"}, {"a": 1}, "array"),
        ({"type": "array", "items": "int"}, [1, "x"], "array"),
        ({"type": "map", "values": "int"}, [], "map"),
        ({"type": "map", "values": "int"}, {"a": None}, "map"),
        (NAMED, {}, "record N"),
        (NAMED, {"b": None}, "record N"),
        (NAMED, None, "record N"),
        (NAMED, [], "record N"),
    ],
    ids=str,
)
def test_default_that_is_none_of_its_type(kind: Any, default: Any, name: str) -> None:
    reader = make_record(make_field("w", kind, default), make_field("v", "int"))

    assert read([b"\2"], reader, make_one("int")) == ([None], [f"field w: its default is no {name}"])


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("long", 7), ("double", 1.5), ("string", "x"), ("boolean", False), (ENUM, "A"), (["null", "int"], None),
        ({"type": "array", "items": "int"}, [1]), ({"type": "map", "values": "int"}, {"a": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_default_equals_that_of_fastavro(kind: Any, default: Any) -> None:
    reader, writer = make_record(make_field("w", kind, default)), make_one("int")

    assert read_all([b"\2"], reader, writer) == read_with_fastavro([b"\2"], writer, reader) == [{"w": default}]
