"""What a reader's schema does not take of a writer's: all values of it, or those of one branch of a union."""

from __future__ import annotations

from typing import Any

import pytest
from tests.onceover.formats.avro.encoding import encode_bytes, encode_long
from tests.onceover.formats.avro.reading import read
from tests.onceover.formats.avro.resolving import make_field, make_one, make_record

DATE = {"type": "int", "logicalType": "date"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
UUID = {"type": "string", "logicalType": "uuid"}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
NAMED = {"type": "record", "name": "N", "fields": [{"name": "a", "type": "int"}]}


def make_decimal(precision: int, scale: int, kind: str = "bytes") -> dict[str, Any]:
    return {"type": kind, "logicalType": "decimal", "precision": precision, "scale": scale}


@pytest.mark.parametrize(
    ("writer", "reader", "why"),
    [
        ("long", "int", "field v: long is no int"),
        ("double", "float", "field v: double is no float"),
        ("double", "long", "field v: double is no long"),
        ("boolean", "int", "field v: boolean is no int"),
        ("int", "boolean", "field v: int is no boolean"),
        ("int", "string", "field v: int is no string"),
        ("string", ENUM, "field v: string is no enum E"),
        (ENUM, "string", "field v: enum E is no string"),
        ("bytes", FIXED, "field v: bytes is no fixed F of 4 bytes"),
        (FIXED, "bytes", "field v: fixed F of 4 bytes is no bytes"),
        (FIXED, FIXED | {"size": 5}, "field v: fixed F of 4 bytes is no fixed F of 5 bytes"),
        (FIXED, FIXED | {"name": "G"}, "field v: fixed F of 4 bytes is no fixed G of 4 bytes"),
        (ENUM, ENUM | {"name": "G"}, "field v: enum E is no enum G"),
        (NAMED, NAMED | {"name": "M"}, "field v: record N is no record M"),
        (NAMED, {"type": "map", "values": "int"}, "field v: record N is no map"),
        ({"type": "array", "items": "int"}, "int", "field v: array is no int"),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, "field v: long is no int"),
        ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, "field v: map is no array"),
        ("null", "int", "field v: null is no int"),
        (["null"], "int", "field v: union of null is no int"),
        (["null", "string"], "int", "field v: union of null and string is no int"),
        ("string", ["null", "int"], "field v: string is no int"),
        (NAMED, NAMED | {"fields": [{"name": "b", "type": "int"}]}, "field v.b: missing, and without a default"),
        (NAMED, NAMED | {"fields": [{"name": "a", "type": "string"}]}, "field v.a: int is no string"),
        # Safe by choice: a number or a text that is promoted is no time and no decimal of the reader's.
        ("int", MILLIS, "field v: int is no timestamp-millis"),
        ("int", MICROS, "field v: int is no timestamp-micros"),
        (DATE, MICROS, "field v: date is no timestamp-micros"),
        ("string", make_decimal(4, 2), "field v: string is no decimal(4, 2)"),
        ("bytes", UUID, "field v: bytes is no uuid"),
        (make_decimal(4, 2), make_decimal(5, 2), "field v: decimal(4, 2) is no decimal(5, 2)"),
        (make_decimal(4, 2), make_decimal(4, 1), "field v: decimal(4, 2) is no decimal(4, 1)"),
        (make_decimal(4, 2), FIXED | make_decimal(4, 2, "fixed"), "field v: decimal(4, 2) is no decimal(4, 2)"),
        (MILLIS, MICROS, "field v: timestamp-millis is no timestamp-micros"),
        (LOCAL, MICROS, "field v: local-timestamp-micros is no timestamp-micros"),
        (MICROS, MICROS | {"logicalType": "timestamp-nanos"}, "field v: timestamp-micros is no timestamp-nanos"),
        (DATE, DATE | {"logicalType": "time-millis"}, "field v: date is no time-millis"),
        ("nothing", "int", "field v: no type of the name 'nothing'"),
    ],
    ids=str,
)
def test_schema_that_the_reader_does_not_take(writer: Any, reader: Any, why: str) -> None:
    assert read([b"\2", None], make_one(reader), make_one(writer)) == ([None, None], [why, None])


@pytest.mark.parametrize(
    ("writer", "why"),
    [
        ('"int"', "int is no record R"),
        (make_one("int").replace('"R"', '"S"'), "record S is no record R"),
        (f"[{make_one('int')}]", None),
        (f'["null", {make_one("int")}]', "Avro with a number beyond a union's types"),
        ("{", "no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (make_record(), "field v: missing, and without a default"),
        (make_one("\ud800"), "field v: no type of the name '\\ud800'"),
    ],
    ids=str,
)
def test_writer_whose_top_is_another(writer: str, why: str | None) -> None:
    data = encode_long(2 if why and "number" in why else 0) + b"\2"

    assert read([data], make_one("int"), writer)[1] == [why]


@pytest.mark.parametrize(
    ("writer", "reader", "rows"),
    [
        (["null", "int", "string"], ["null", "long"],
         [(b"\0", None), (b"\2\4", 2), (b"\4" + encode_bytes(b"x"), "field v: string is no long")]),
        (["null", "int"], "int", [(b"\0", "field v: null is no int"), (b"\2\4", 2)]),
        (["int", "long"], "int", [(b"\0\4", 2), (b"\2\4", "field v: long is no int")]),
        (["int", "long"], "float", [(b"\0\4", 2.0), (b"\2\4", 2.0)]),
        ([NAMED, "string"], NAMED, [(b"\0\4", {"a": 2}), (b"\2\0", "field v: string is no record N")]),
        ([NAMED, NAMED | {"name": "M"}], NAMED, [(b"\0\4", {"a": 2}), (b"\2\4", "field v: record M is no record N")]),
        (["string", MICROS], ["null", MICROS], [(b"\2\4", 2), (b"\0\0", "field v: string is no timestamp-micros")]),
        ([MILLIS, "null"], ["null", MICROS], [(b"\2", None),
                                              (b"\0\4", "field v: timestamp-millis is no timestamp-micros")]),
        (ENUM, ENUM | {"symbols": ["B"]}, [(b"\2", "B"), (b"\0", "field v: a symbol that the reader's enum lacks")]),
        (ENUM, ENUM | {"symbols": ["Z"]}, [(b"\2", "field v: a symbol that the reader's enum lacks")]),
    ],
    ids=str,
)  # fmt: skip
def test_branch_or_symbol_that_the_reader_lacks_is_its_rows(writer: Any, reader: Any, rows: list[Any]) -> None:
    schemas = make_one(reader), make_one(writer)
    for order in (rows, rows[::-1], rows * 3):
        found, reasons = read([data for data, _ in order], *schemas)

        is_refused = [isinstance(wanted, str) and wanted.startswith("field ") for _, wanted in order]
        assert reasons == [wanted if no else None for (_, wanted), no in zip(order, is_refused, strict=True)]
        assert found == [None if no else {"v": wanted} for (_, wanted), no in zip(order, is_refused, strict=True)]


def test_reason_of_a_large_schema_is_short() -> None:
    union = [{"type": "record", "name": f"N{number}", "fields": []} for number in range(10_000)]
    names = [union, {"type": "record", "name": "n" * 100_000, "fields": []}, {"type": "record", "name": "-" * 100_000}]

    reasons = [read([b"\2"], make_one("int"), make_one(kind))[1][0] for kind in names]

    starts = ["field v: union of record N0 and ", "field v: record nnnn", "field v: '----"]
    for reason, start in zip(reasons, starts, strict=True):
        assert reason is not None
        assert reason.startswith(start)
        assert len(reason) < 600


def test_missing_field_without_a_default_is_named() -> None:
    reader = make_record(make_field("v", "int"), make_field("w", "int"))

    assert read([b"\2"], reader, make_one("int")) == ([None], ["field w: missing, and without a default"])
