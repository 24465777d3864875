"""Hostile bytes of each kind: the reason of each, for its row only, and in no time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.hostile.tries import is_refused
from tests.onceover.formats.avro.decoding import MOST_ITEMS
from tests.onceover.formats.avro.encoding import encode_blocks, encode_bytes, encode_long
from tests.onceover.formats.avro.reading import read

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
INTS = {"type": "array", "items": "int"}
MAP = {"type": "map", "values": "int"}
NULLS = {"type": "array", "items": "null"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
SMALL = {"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal", "precision": 4, "scale": 2}
TEXT_MAP = {"type": "map", "values": "string"}
OPTIONAL = ["null", "int"]
CUT = "Avro cut off"
LONG_NUMBER = "Avro with a number of more than 64 bits"
TREE = {"type": "record", "name": "Tree", "fields": [{"name": n, "type": ["Tree", "null"]} for n in ("a", "b")]}
KEY = encode_bytes(b"k")
MANY = f"Avro with more than {MOST_ITEMS} items"
ALWAYS_ONE = {"type": "record", "name": "L", "fields": [{"name": "a", "type": "L"}, {"name": "b", "type": "L"}]}
GOOD: dict[str, bytes] = {
    "boolean": b"\1", "bytes": b"\2a", "string": b"\2a", "int": b"\2", "long": b"\2", "double": bytes(8),
    "float": bytes(4),
}  # fmt: skip

READ = [
    ("boolean", b"\2", "Avro with a boolean that is neither 0 nor 1"),
    ("boolean", b"\xff", "Avro with a boolean that is neither 0 nor 1"),
    ("boolean", b"", CUT),
    ("int", b"", CUT),
    ("int", b"\x80", CUT),
    ("int", b"\xff" * 9, CUT),
    ("int", b"\xff" * 10, LONG_NUMBER),
    ("int", b"\x80" * 10 + b"\0", LONG_NUMBER),
    ("long", b"\xff" * 9 + b"\2", LONG_NUMBER),
    ("int", encode_long(1 << 31), "field v: out of range"),
    ("int", encode_long(-(1 << 31) - 1), "field v: out of range"),
    ("float", bytes(3), CUT),
    ("double", bytes(7), CUT),
    ("bytes", encode_long(-1), CUT),
    ("bytes", encode_long(2), CUT),
    ("bytes", encode_long((1 << 63) - 1) + b"abc", CUT),
    ("bytes", encode_long(-(1 << 63)) + b"abc", CUT),
    ("string", encode_long(1 << 40) + b"abc", CUT),
    ("string", encode_bytes(b"\xff"), "field v: not UTF-8"),
    ("string", encode_bytes(b"\xed\xa0\x80"), "field v: not UTF-8"),
    ("string", encode_bytes(b"\xc0\x80"), "field v: not UTF-8"),
    ("string", encode_bytes("漢".encode()[:2]), "field v: not UTF-8"),
    (FIXED, bytes(3), CUT),
    (ENUM, encode_long(2), "Avro with a number beyond an enum's symbols"),
    (ENUM, encode_long(-1), "Avro with a number beyond an enum's symbols"),
    (ENUM, encode_long((1 << 63) - 1), "Avro with a number beyond an enum's symbols"),
    (OPTIONAL, encode_long(2), "Avro with a number beyond a union's types"),
    (OPTIONAL, encode_long(-1), "Avro with a number beyond a union's types"),
    (OPTIONAL, encode_long(-(1 << 63)), "Avro with a number beyond a union's types"),
    (OPTIONAL, encode_long(1), CUT),
    (INTS, encode_long(1), CUT),
    (INTS, encode_long(1) + b"\2", CUT),
    (INTS, encode_long(-1), CUT),
    (INTS, encode_long(-1) + b"\2", CUT),
    (INTS, encode_long(1 << 62), MANY),
    (INTS, encode_long(-(1 << 63)) + b"\0", MANY),
    (INTS, encode_long(1 - (1 << 63)) + b"\0", MANY),
    (INTS, encode_long(MOST_ITEMS + 1), MANY),
    (INTS, encode_long(2) + encode_long(1) + encode_long(1 << 31) + b"\0", "field v: out of range"),
    (MAP, encode_long(1) + KEY, CUT),
    (MAP, encode_blocks([KEY + b"\2", KEY + b"\4"]), "field v: one key twice"),
    (MAP, encode_long(1) + KEY + b"\2" + encode_long(1) + KEY + b"\2" + b"\0", "field v: one key twice"),
    (MAP, encode_blocks([encode_bytes(b"\xff") + b"\2"]), "field v: not UTF-8"),
    (TEXT_MAP, encode_blocks([KEY + encode_bytes(b"\xff")]), "field v: not UTF-8"),
    (MILLIS, encode_long((1 << 63) // 1000 + 1), "field v: out of range"),
    (MILLIS, encode_long(-((1 << 63) // 1000) - 1), "field v: out of range"),
    (MILLIS, encode_long(-(1 << 63)), "field v: out of range"),
    (DECIMAL, encode_bytes(b""), "field v: not 1 to 4 digits"),
    (DECIMAL, encode_bytes((10_000).to_bytes(2)), "field v: not 1 to 4 digits"),
    (DECIMAL, encode_bytes((-10_000).to_bytes(2, signed=True)), "field v: not 1 to 4 digits"),
    (DECIMAL, encode_bytes((1 << 128).to_bytes(17)), "field v: not 1 to 4 digits"),
    (DECIMAL, encode_bytes((1 << 900_000).to_bytes(200_000)), "field v: not 1 to 4 digits"),
    (DECIMAL, encode_long(-1), CUT),
    (SMALL, (10_000).to_bytes(4), "field v: not 1 to 4 digits"),
    (SMALL, bytes(3), CUT),
]  # fmt: skip
SKIPPED = [
    ("boolean", b"\2", "Avro with a boolean that is neither 0 nor 1"),
    ("long", b"\xff" * 10, LONG_NUMBER),
    ("string", encode_long(-1), CUT),
    ("bytes", encode_long((1 << 63) - 1), CUT),
    (FIXED, bytes(2), CUT),
    (ENUM, encode_long(2), "Avro with a number beyond an enum's symbols"),
    (["null", "int", "string"], encode_long(3), "Avro with a number beyond a union's types"),
    (["null", "int", "string"], encode_long(-1), "Avro with a number beyond a union's types"),
    (INTS, encode_long(1 << 62), MANY),
    (NULLS, encode_long((1 << 63) - 1), MANY),
    (NULLS, encode_long(-(1 << 63)) + b"\0", MANY),
    (NULLS, (encode_long(40_000)) * 2 + b"\0", MANY),
    ({"type": "array", "items": NULLS}, encode_long(3) + (encode_long(30_000) + b"\0") * 3 + b"\0", MANY),
    (MAP, encode_long(2) + KEY + b"\2", CUT),
    (TREE, encode_long(0) * 1_000, "Avro nested more than 128 deep"),
    (TREE, encode_long(0) * 5, CUT),
    (TREE, encode_long(0) * 5 + b"\4" + b"\2" * 5, "Avro with a number beyond a union's types"),
    (ALWAYS_ONE, b"", "Avro nested more than 128 deep"),
]
IGNORED = [
    ("string", encode_bytes(b"\xff")),
    ("int", encode_long(1 << 40)),
    (MAP, encode_blocks([KEY + b"\2", KEY + b"\4"])),
    (DECIMAL, encode_bytes(b"")),
    (MILLIS, encode_long(-(1 << 63))),
    (NULLS, encode_long(MOST_ITEMS) + b"\0"),
    (TREE, encode_long(0) * 100 + encode_long(1) * 102),
]


def make_schema(*types: Any) -> str:
    fields = [{"name": name, "type": kind} for name, kind in zip(("before", "v", "after"), types, strict=True)]
    return json.dumps({"type": "record", "name": "R", "fields": [each for each in fields if each["type"]]})


def name_case(value: Any) -> str:
    return json.dumps(value)[:40] if not isinstance(value, bytes) else value[:12].hex()


@pytest.mark.parametrize(("kind", "data", "why"), READ, ids=name_case)
def test_reason_of_a_field_is_for_its_row_only(kind: Any, data: bytes, why: str) -> None:
    schema = make_schema("string", kind, None)
    good = encode_bytes(b"x") + find_good(kind)
    values = [good, encode_bytes(b"x") + data, None, good, encode_bytes(b"") + data, good]

    rows, reasons = read(values, schema)

    assert reasons == [None, why, None, None, why, None]
    assert rows[1:3] + rows[4:5] == [None] * 3
    assert rows[0] == rows[3] == rows[5] == read([good], schema)[0][0]
    assert rows[0] is not None


@pytest.mark.parametrize(("kind", "data", "why"), SKIPPED, ids=name_case)
def test_reason_of_a_skipped_field_is_for_its_row_only(kind: Any, data: bytes, why: str) -> None:
    is_union = isinstance(kind, list)
    writer = make_schema("string", kind if is_union else ["double", kind], None)
    good = encode_bytes(b"x") + encode_long(0) + (b"" if is_union else bytes(8))
    bad = encode_bytes(b"y") + (b"" if is_union else encode_long(1)) + data

    rows, reasons = read([good, bad, good], make_schema("string", None, None), writer)

    assert reasons == [None, why, None]
    assert rows == [{"before": "x"}, None, {"before": "x"}]


@pytest.mark.parametrize(("kind", "data"), IGNORED, ids=name_case)
def test_skipped_field_is_judged_by_its_length_only(kind: Any, data: bytes) -> None:
    writer, reader = make_schema(None, kind, "long"), make_schema(None, None, "long")

    assert read([data + encode_long(5)] * 2, reader, writer) == ([{"after": 5}] * 2, [None] * 2)


@pytest.mark.parametrize("behind", [b"", b"\1", b"\xff" * 10, b"\x80" * 10], ids=bytes.hex)
def test_reason_of_a_cut_depends_on_no_row_behind(behind: bytes) -> None:
    assert read([b"\xff\xff", behind], make_schema(None, "long", None))[1][0] == CUT


def test_first_reason_of_a_row_is_the_one_given() -> None:
    schema = make_schema("boolean", "string", "int")

    assert read([b"\2" + encode_bytes(b"\xff")], schema)[1] == ["Avro with a boolean that is neither 0 nor 1"]


def test_array_that_is_cut_off_ends_the_reading_of_its_row() -> None:
    fields = [{"name": f"f{number}", "type": "string"} for number in range(12)]
    schema = make_schema(None, {"type": "array", "items": {"type": "record", "name": "I", "fields": fields}}, None)
    reasons: list[str | None] = []

    took = is_refused(lambda: reasons.extend(read([encode_long(MOST_ITEMS)] * 3, schema)[1]), seconds=5)

    assert took is None
    assert reasons == [CUT] * 3


def test_skipped_records_of_no_bytes_are_counted() -> None:
    """Twenty records, each with the one before it twice, are a million of the first."""
    kind: Any = {"type": "record", "name": "T0", "fields": []}
    for number in range(1, 21):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"T{number - 1}"}]
        kind = {"type": "record", "name": f"T{number}", "fields": fields}
    writer, reader = make_schema(None, kind, "int"), make_schema(None, None, "int")
    reasons: list[str | None] = []

    took = is_refused(lambda: reasons.extend(read([b"\2"] * 3, reader, writer)[1]), seconds=60)

    assert took is None
    assert reasons == [f"Avro with more than {4 * MOST_ITEMS} records and arrays to skip"] * 3


def test_skipped_arrays_within_themselves_end() -> None:
    node: Any = "Node"
    for _ in range(10):
        node = {"type": "array", "items": node}
    node = {"type": "record", "name": "Node", "fields": [{"name": "inner", "type": node}]}
    writer, reader = make_schema(None, node, "int"), make_schema(None, None, "int")
    deep = encode_long(1) * 200 + encode_long(0) * 201

    rows, reasons = read([b"\0\2", deep + b"\2", b"\0\2"], reader, writer)

    assert reasons == [None, "Avro nested more than 128 deep", None]
    assert rows == [{"after": 1}, None, {"after": 1}]


def find_good(kind: Any) -> bytes:
    """Return bytes of a value of that kind."""
    if isinstance(kind, str):
        return GOOD[kind]
    if kind == DECIMAL:
        return encode_bytes(b"\1")
    if kind == OPTIONAL:
        return encode_long(1) + encode_long(7)
    if kind in (MAP, TEXT_MAP):
        return encode_blocks([KEY + b"\2" + (b"x" if kind == TEXT_MAP else b"")])
    return {"array": encode_blocks([b"\2", b"\4"]), "enum": b"\2", "long": b"\2", "fixed": bytes(4)}[kind["type"]]
