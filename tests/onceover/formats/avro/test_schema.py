"""Schemas: what is one, how names are found, and the Arrow type of each."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from tests.onceover.formats.avro.encoding import encode_long
from tests.onceover.formats.avro.reading import read
from tests.onceover.formats.avro.resolving import make_field, make_one, make_record

from onceover.formats.avro.arrow_types import find_row_type
from onceover.formats.avro.schema import AvroSchemaError, AvroType, parse_schema
from onceover.formats.avro.values import AvroReader

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
UNION = "field v: a union is of different types, at least one, none of them a union"
SYMBOLS = "field v: the symbols of an enum are a list of names"
TWICE = "field v: an enum's symbols differ, and its default is one of them"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON: Expecting value: line 1 column 1 (char 0)"),
        ("{'type': 'int'}", "no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("5", "no type"),
        ("null", "no type"),
        ("true", "no type"),
        ("{}", "no type"),
        ('{"type": 5}', "no type"),
        ('{"type": null}', "no type"),
        ('{"type": {"type": {}}}', "no type"),
        ("[]", UNION.removeprefix("field v: ")),
        ('"text"', "no type of the name 'text'"),
        ('"' + "n" * 100 + '"', f"no type of the name '{'n' * 80}'"),
        ('{"type": "record", "name": "R"}', "a record without fields"),
        ('{"type": "record", "name": "R", "fields": {}}', "a record without fields"),
        ('{"type": "record", "fields": []}', "None is no name"),
        ('{"type": "record", "name": "", "fields": []}', "'' is no name"),
        ('{"type": "record", "name": "a..b", "fields": []}', "'a..b' is no name"),
        ('{"type": "record", "name": ".b", "fields": []}', "'.b' is no name"),
        ('{"type": "record", "name": "1a", "fields": []}', "'1a' is no name"),
        ('{"type": "record", "name": "é", "fields": []}', "'é' is no name"),
        ('{"type": "record", "name": "R", "fields": [5]}', "'None' is no name of a field"),
        ('{"type": "record", "name": "R", "fields": [{"type": "int"}]}', "'None' is no name of a field"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a-b", "type": "int"}]}', "'a-b' is no name of a field"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a"}]}', "field a: no type"),
        ('{"type": "record", "name": "R", "fields": [], "aliases": "Q"}', "aliases are a list of names"),
        ('{"type": "record", "name": "R", "fields": [], "aliases": [5]}', "aliases are a list of names"),
        (make_record(make_field("a", "int"), make_field("a", "long")), "record R has two fields of one name"),
        (make_record(make_field("a", "int", aliases=["b"])).replace('["b"]', '"b"'),
         "field a: aliases are a list of names"),
    ],
    ids=str,
)  # fmt: skip
def test_text_that_is_no_schema(text: str, why: str) -> None:
    with pytest.raises(AvroSchemaError) as raised:
        parse_schema(text)
    assert str(raised.value) == why


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("Int", "field v: no type of the name 'Int'"),
        ("date", "field v: no type of the name 'date'"),
        ({"type": "array"}, "field v: an array without items"),
        ({"type": "map"}, "field v: a map without values"),
        ({"type": "array", "items": {"type": "map"}}, "field v: a map without values"),
        ([], UNION),
        (["int", "int"], UNION),
        (["int", {"type": "int", "logicalType": "date"}], UNION),
        (["null", ["int"]], UNION),
        ([{"type": "array", "items": "int"}, {"type": "array", "items": "long"}], UNION),
        ([ENUM, "E"], UNION),
        (ENUM | {"symbols": None}, SYMBOLS),
        (ENUM | {"symbols": []}, SYMBOLS),
        (ENUM | {"symbols": "AB"}, SYMBOLS),
        (ENUM | {"symbols": ["A", 5]}, SYMBOLS),
        (ENUM | {"symbols": ["a-b"]}, SYMBOLS),
        (ENUM | {"symbols": ["A", "A"]}, TWICE),
        (ENUM | {"default": "Z"}, TWICE),
        (ENUM | {"default": ["A"]}, TWICE),
        (FIXED | {"size": None}, "field v: None is no size of a fixed"),
        (FIXED | {"size": -1}, "field v: -1 is no size of a fixed"),
        (FIXED | {"size": True}, "field v: True is no size of a fixed"),
        (FIXED | {"size": 1.5}, "field v: 1.5 is no size of a fixed"),
        (FIXED | {"size": (1 << 20) + 1}, "field v: 1048577 is no size of a fixed"),
        (FIXED | {"name": "R"}, "field v: two types of the name R"),
        ({"type": "record", "name": "N", "fields": [make_field("w", "x")]}, "field v.w: no type of the name 'x'"),
    ],
    ids=str,
)
def test_type_of_a_field_that_is_none(kind: Any, why: str) -> None:
    with pytest.raises(AvroSchemaError) as raised:
        parse_schema(make_one(kind))
    assert str(raised.value) == why


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("null", "field v is always null: take the field out"),
        (["null"], "field v is a union of null: take the field out, or leave one type and null"),
        (["int", "string"], "field v is a union of int and string: take the field out, or leave one type and null"),
        ("R", "field v is a record within itself: take the field out"),
        (["null", "R"], "field v is a record within itself: take the field out"),
        ({"type": "array", "items": "R"}, "field v is a record within itself: take the field out"),
        ({"type": "map", "values": ["null", "R"]}, "field v is a record within itself: take the field out"),
        ({"type": "record", "name": "N", "fields": []}, "record N has no fields: take it out"),
        ({"type": "record", "name": "N", "fields": [make_field("a", "null")]},
         "field v.a is always null: take the field out"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39},
         "field v is a decimal(39, 0), and SQL has 38 digits: take the field out"),
    ],
    ids=str,
)  # fmt: skip
def test_type_that_sql_has_none_for(kind: Any, why: str) -> None:
    schema = make_one(kind)
    with pytest.raises(AvroSchemaError) as raised:
        find_row_type(parse_schema(schema))
    assert str(raised.value) == why
    with pytest.raises(AvroSchemaError) as raised:
        AvroReader(schema).read(pa.array([b""], pa.binary()))
    assert str(raised.value) == why


def test_schema_whose_top_is_no_record_is_refused() -> None:
    for text, name in (('"int"', "int"), ('["null", "int"]', "union of null and int"), (json.dumps(ENUM), "enum E")):
        with pytest.raises(AvroSchemaError, match=f"^it is of type {name}, and not a record$"):
            find_row_type(parse_schema(text))


@pytest.mark.parametrize("inner", ['{"type":"array","items":%s}', '{"type":%s}', '{"type":"map","values":["null",%s]}'])
@pytest.mark.parametrize("depth", [65, 400, 100_000])
def test_schema_nested_too_deeply_is_refused(inner: str, depth: int) -> None:
    start, _, end = inner.partition("%s")
    assert parse_schema(start * 30 + '"int"' + end * 30)
    with pytest.raises(AvroSchemaError) as raised:
        parse_schema(start * depth + '"int"' + end * depth)
    assert str(raised.value) == "it is nested too deeply"


def test_values_of_the_deepest_schema_are_read() -> None:
    kind: Any = "int"
    for _ in range(60):
        kind = {"type": "array", "items": kind}
    data = encode_long(1) * 61 + encode_long(0) * 60
    rows, reasons = read([data, b""], make_one(kind))
    skipped, none = read([data + b"\4"], make_record(make_field("w", "int")),
                         make_record(make_field("v", kind), make_field("w", "int")))  # fmt: skip

    assert str(rows[0]) == "{'v': " + "[" * 60 + "1" + "]" * 60 + "}"
    assert reasons == [None, "Avro cut off"]
    assert (skipped, none) == ([{"w": 2}], [None])


@pytest.mark.parametrize(
    ("top", "defined", "reference", "is_found"),
    [
        ("", {"name": "E"}, "E", True),
        ("shop", {"name": "E"}, "E", True),
        ("shop", {"name": "E"}, "shop.E", True),
        ("shop", {"name": "E"}, "store.E", False),
        ("shop", {"name": "E", "namespace": "store"}, "store.E", True),
        ("shop", {"name": "E", "namespace": "store"}, "E", False),
        ("shop", {"name": "store.E"}, "store.E", True),
        ("shop", {"name": "store.E", "namespace": "shop"}, "shop.E", False),
        ("shop", {"name": "E", "namespace": ""}, "E", True),
        ("shop", {"name": "E", "namespace": ""}, "shop.E", False),
    ],
)
def test_name_is_found_in_its_namespace(top: str, defined: Any, reference: str, is_found: bool) -> None:
    fields = [make_field("a", ENUM | defined), make_field("b", reference)]
    text = json.dumps({"type": "record", "name": "R", "namespace": top, "fields": fields})

    if is_found:
        a, b = parse_schema(text).fields
        assert a.type is b.type
    else:
        with pytest.raises(AvroSchemaError, match=f"^field b: no type of the name '{reference}'$"):
            parse_schema(text)


def test_namespace_of_a_record_ends_with_it() -> None:
    inner = {"type": "record", "name": "N", "namespace": "in", "fields": [make_field("e", ENUM)]}
    fields = [make_field("a", inner), make_field("b", "in.E"), make_field("c", ENUM), make_field("d", "E")]
    record = parse_schema(json.dumps({"type": "record", "name": "R", "namespace": "out", "fields": fields}))

    kinds = [each.type for each in record.fields]
    assert kinds[0].fields[0].type is kinds[1]
    assert kinds[2] is kinds[3]
    assert kinds[1] is not kinds[2]


def test_union_of_two_records_of_one_name_is_skipped() -> None:
    union = [{"type": "record", "name": f"{space}.A", "fields": [make_field("a", kind)]}
             for space, kind in (("x", "int"), ("y", "double"))]  # fmt: skip
    writer = make_record(make_field("v", union), make_field("w", "int"))

    assert read([b"\0\2\4", b"\2" + bytes(8) + b"\4"], make_record(make_field("w", "int")), writer)[0] == [{"w": 2}] * 2


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "long", "logicalType": "unknown"},
        {"type": "long", "logicalType": 5},
        {"type": "long", "logicalType": "date"},
        {"type": "int", "logicalType": "timestamp-millis"},
        {"type": "string", "logicalType": "decimal", "precision": 4},
        {"type": "bytes", "logicalType": "uuid"},
        {"type": "bytes", "logicalType": "decimal"},
        {"type": "bytes", "logicalType": "decimal", "precision": 0},
        {"type": "bytes", "logicalType": "decimal", "precision": "4"},
        {"type": "bytes", "logicalType": "decimal", "precision": True},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 5},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": -1},
        FIXED | {"logicalType": "uuid"},
        FIXED | {"logicalType": "duration"},
        FIXED | {"logicalType": "decimal", "precision": 10},
        FIXED | {"logicalType": "decimal", "precision": 1 << 80},
        FIXED | {"size": 0, "logicalType": "decimal", "precision": 1},
    ],
    ids=str,
)
def test_logical_type_that_is_none_is_ignored(kind: dict[str, Any]) -> None:
    plain = {"long": pa.int64(), "int": pa.int32(), "string": pa.string()}.get(kind["type"], pa.binary())

    assert AvroReader(make_one(kind)).type == pa.struct([("v", plain)])


def test_fixed_decimal_has_as_many_digits_as_its_bytes_hold() -> None:
    for size in range(1, 17):
        most = len(str((1 << 8 * size - 1) - 1)) - 1
        for precision, is_decimal in ((most, True), (most + 1, False)):
            kind = FIXED | {"size": size, "logicalType": "decimal", "precision": precision}
            assert pa.types.is_decimal(AvroReader(make_one(kind)).type.field("v").type) == is_decimal


def test_attribute_that_avro_lacks_is_ignored() -> None:
    text = '{"type": "error", "name": "R", "doc": 5, "x": [], "fields": [{"name": "v", "type": "int", "order": "z"}]}'

    made = parse_schema(text)

    assert (made.kind, made.name, [each.name for each in made.fields]) == ("record", "R", ["v"])
    assert isinstance(made.fields[0].type, AvroType)
