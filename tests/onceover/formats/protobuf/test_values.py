"""Protobuf values are read as what was put into them, by the rules of the format, or have a reason."""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from tests.onceover.formats.protobuf.messages import EVENT, draw_event, make_class

from onceover.errors import RegistryAwayError
from onceover.formats.framed import GuidHeader, SchemaName, WriterUnknownError
from onceover.formats.protobuf.schema import ProtobufSchemaError, _compile, find_message
from onceover.formats.protobuf.values import ProtobufReader, explain_difference
from onceover.formats.undecodable import UndecodableError


class Schemas:
    """Writers' schemas by ID: 99 does not exist, 98 is not known yet."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def read(self, name: SchemaName) -> str:
        if name == 99:
            raise UndecodableError("schema 99 is not in the registry")
        if name == 98:
            raise RegistryAwayError("schema 98 is not known yet")
        return self._texts[name if isinstance(name, int) else 0]


def read(values: Sequence[bytes | None], reader: ProtobufReader | None = None) -> tuple[list[Any], list[str | None]]:
    rows, faults = (reader or ProtobufReader(EVENT, "shop.Event")).read(pa.array(values, pa.binary()))
    found = rows.to_pylist()
    for row in found:
        if row is not None and "by_name" in row:
            row["by_name"] = sorted(row["by_name"])
    return found, faults.to_pylist()


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.rare)])
def test_rows_are_what_was_written(count: int) -> None:
    chance = random.Random(count)
    drawn = [draw_event(chance) for _ in range(count)]

    rows, faults = read([event.SerializeToString() for event, _ in drawn])

    assert set(faults) == {None}
    assert [row for row, (_, wanted) in zip(rows, drawn, strict=True) if row != wanted] == []


def test_mutated_bytes_spoil_no_other_value() -> None:
    chance = random.Random(3)
    good, wanted = draw_event(chance)
    data = good.SerializeToString()
    cut = [data[:end] for end in range(len(data))]
    flipped = [data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :] for at in range(len(data))]
    values = [each for bad in (*cut, *flipped) for each in (bad, data)]

    rows, faults = read(values)

    assert rows[1::2] == [wanted] * (len(values) // 2)
    assert set(faults[1::2]) == {None}
    assert {fault for fault in faults if fault} >= {"not a Protobuf message"}
    assert all((row is None) != (fault is None) for row, fault in zip(rows, faults, strict=True))


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"\xff", "not a Protobuf message"),
        (b"\x0a\x01x", "field a_int32: of another type"),
        (b"\x92\x01\x04\x0a\x02\xff", "not a Protobuf message"),
        (b"\x92\x01\x02\x08\x01", "field data: of another type"),
        (b"\x78\x05", "field a_color: a number that the reader's enum lacks"),
        (b"\x6a\x01\xff", "not a Protobuf message"),
        (b"\x8a\x01\x0c\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x00", "no timestamp"),
        (b"\x8a\x01\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "no timestamp"),
    ],
)
def test_what_is_no_message_has_a_reason(value: bytes, fault: str) -> None:
    assert read([value, b"", None])[1] == [fault, None, None]


def test_unknown_fields_are_left_out() -> None:
    rows, faults = read([b"\xa0\x3e\x07\x08\x05"])
    assert (rows[0]["a_int32"], faults) == (5, [None])


CHANGES = [
    ("sint64 a_sint64 = 5", "int64 a_sint64 = 5", "field a_sint64: int64 is no sint64"),
    ("int64 a_int64 = 4", "int32 a_int64 = 4", None),
    ("int32 a_int32 = 1", "int64 a_int32 = 1", "field a_int32: int64 is no int32"),
    ("uint64 a_uint64 = 9", "uint32 a_uint64 = 9", None),
    ("bytes a_bytes = 14", "string a_bytes = 14", None),
    ("string a_string = 13", "bytes a_string = 13", "field a_string: bytes is no string"),
    ("repeated int32 numbers = 19", "int32 numbers = 19", "field numbers: int32 is no repeated int32"),
    ("bool a_bool = 12;", "", None),
    ("bool a_bool = 12;", "bool is_set = 12; string more = 99;", None),
    ("Timestamp at = 17", "Timestamp at = 17; google.protobuf.Timestamp then = 98", None),
    ("google.protobuf.Timestamp at = 17", "string at = 17", "field at: string is no timestamp"),
    ("fixed64 size = 1", "uint64 size = 1", "field inner.deep.size: uint64 is no fixed64"),
    ("map<string, Deep> by_name", "repeated Deep by_name", "field by_name: repeated message is no map"),
    ("Color a_color = 15", "int32 a_color = 15", "field a_color: int32 is no enum"),
]


@pytest.mark.parametrize(("old", "new", "refused"), CHANGES, ids=[new or old for old, new, _ in CHANGES])
def test_writer_s_schema_is_read_or_refused_by_numbers(old: str, new: str, refused: str | None) -> None:
    writer = EVENT.replace(old, new)
    assert writer != EVENT
    value = b"\0\0\0\0\0\2\2" + make_class(writer)(a_int32=3).SerializeToString()

    rows, faults = read([value], ProtobufReader(EVENT, "shop.Event", Schemas(writer)))

    assert faults == [refused and f"schema 0: {refused}"]
    assert refused is not None or rows[0]["a_int32"] == 3
    assert explain_difference(writer, EVENT, "shop.Event")[0] is (refused is None)


def test_differences_are_told_by_field() -> None:
    writer = EVENT.replace("bool a_bool = 12;", "bool is_set = 12; string more = 99;")
    writer = writer.replace("int64 maybe = 16", "int32 maybe = 16").replace("float a_float = 10;", "")
    assert explain_difference(writer, EVENT, "shop.Event") == (
        True,
        "field a_float: is not written; field a_bool: was is_set; field maybe: int32 is read as int64; "
        "field more: is left out",
    )
    assert explain_difference(EVENT, EVENT, "shop.Event") == (True, "")
    assert explain_difference(EVENT.replace("shop", "store"), EVENT, "shop.Event") == (
        False,
        "it has no message shop.Event",
    )


def test_frame_names_schema_and_message() -> None:
    body = make_class()(a_int32=1).SerializeToString()
    values = [
        b"\0\0\0\0\0\2\2" + body,
        b"\0\0\0\0\0\0" + body,
        b"\0\0\0\0\0\4\2\0" + body,
        b"\0\0\0\0\0\4\2\x80",
        b"\0\0\0\0\0\xff\xff\xff\xff\xff\x01",
        b"\0\0\0\0\0\1",
        b"\0\0\0\0\0",
        b"\1\0\0\0\0\0",
        b"\0\0\0\0\x63\0",
        None,
    ]

    rows, faults = read(values, ProtobufReader(EVENT, "shop.Event", Schemas(EVENT)))

    assert rows[0]["a_int32"] == 1
    place = "no message index behind the schema's ID"
    assert faults == [
        None,
        "schema 0: message shop.Other is no shop.Event",
        "schema 0: message shop.Event.Inner is no shop.Event",
        place,
        place,
        place,
        place,
        "not in Confluent's wire format",
        "schema 99 is not in the registry",
        None,
    ]


def test_guid_in_a_header_has_the_message_s_place() -> None:
    body = make_class()(a_int32=1).SerializeToString()
    reader = ProtobufReader(EVENT, "shop.Event", Schemas(EVENT))

    rows, faults = reader.read(
        pa.array([body, body], pa.binary()), {0: GuidHeader("g", b"\2\2"), 1: GuidHeader("g", b"\0")}
    )

    assert (rows.to_pylist()[0]["a_int32"], faults.to_pylist()) == (
        1,
        [None, "schema g: message shop.Other is no shop.Event"],
    )


def test_first_value_of_an_unknown_schema_is_named() -> None:
    values = [b"\0\0\0\0\0\2\2", b"\0\0\0\0\x62\2\2", b"\0\0\0\0\x62\2\2"]
    with pytest.raises(WriterUnknownError, match="schema 98 is not known yet") as raised:
        read(values, ProtobufReader(EVENT, "shop.Event", Schemas(EVENT)))
    assert raised.value.row == 1


def test_schema_may_be_a_set_or_what_python_registers() -> None:
    files = _compile(EVENT)
    whole = "base64:" + base64.b64encode(FileDescriptorSet(file=files).SerializeToString()).decode()
    registered = base64.b64encode(files[-1].SerializeToString()).decode()
    assert ProtobufReader(whole, "shop.Event").type == ProtobufReader(EVENT, "shop.Event").type
    assert ProtobufReader(registered, "shop.Event").type == ProtobufReader(EVENT, "shop.Event").type
    alone = base64.b64encode(FileDescriptorProto(name="a", dependency=['x";evil']).SerializeToString()).decode()
    with pytest.raises(ProtobufSchemaError):
        find_message(alone, "shop.Event")


@pytest.mark.parametrize(
    ("schema", "message", "what"),
    [
        ("", "", "it has no message"),
        ("message A {", "", "protoc: line 1:12: Reached end of input in message definition"),
        ('syntax = "proto3"; import "other.proto"; message A { int32 x = 1; }', "", "needs a descriptor set"),
        ("base64:AAAA", "", "neither the text of a .proto file nor a descriptor set"),
        ("base64:", "", "neither the text of a .proto file nor a descriptor set"),
        (EVENT, "", "name one of its messages: shop.Other, shop.Event, shop.Event.Inner, shop.Event.Deep"),
        (EVENT, "shop.Nothing", "it has no message shop.Nothing"),
        (
            'syntax = "proto3"; message A { B b = 1; } message B { A a = 1; }',
            "A",
            "field b.a is a message within itself",
        ),
        ('syntax = "proto3"; message A { map<int32, string> m = 1; }', "", "field m is a map by int32"),
        ('syntax = "proto2"; message A { optional group G = 1 { optional int32 x = 1; } }', "", "field g is a group"),
        ('syntax = "proto3"; message A { }', "", "message A has no fields"),
        ('syntax = "proto3"; message A { B b = 1; } message B { }', "A", "message B has no fields"),
    ],
)
def test_schema_that_sql_cannot_see_says_why(schema: str, message: str, what: str) -> None:
    with pytest.raises(ProtobufSchemaError, match=what.replace(".", r"\.").replace("(", r"\(")):
        _ = ProtobufReader(schema, message).type


NESTED = 'syntax = "proto3"; package shop; message A { message Event { int32 a_int32 = 1; } }'


@pytest.mark.parametrize(
    ("writer", "index", "named"),
    [
        (EVENT.replace("package shop", "package store"), b"\2\2", "store.Event"),
        (NESTED, b"\4\0\0", "shop.A.Event"),
        (EVENT, b"\2\x08", "4"),
        (EVENT, b"\2\1", "-1"),
    ],
)
def test_message_of_another_full_name_is_refused(writer: str, index: bytes, named: str) -> None:
    _, faults = read([b"\0\0\0\0\0" + index], ProtobufReader(EVENT, "shop.Event", Schemas(writer)))
    assert faults == [f"schema 0: message {named} is no shop.Event"]


def test_reason_of_a_framed_value_names_its_schema() -> None:
    frame = b"\0\0\0\0\0\2\2"
    _, faults = read([frame + b"\xff", frame + b"\x78\5"], ProtobufReader(EVENT, "shop.Event", Schemas(EVENT)))
    enum = "field a_color: a number that the reader's enum lacks"
    assert faults == ["schema 0: not a Protobuf message", f"schema 0: {enum}"]


def test_items_and_bytes_of_a_value_are_bounded() -> None:
    numbers, more = (make_class()(numbers=[0] * count).SerializeToString() for count in (16_384, 16_385))
    deep = b"\x92\1\x82\x80\2" + b"\x12\0" * 16_385
    large = b"\x72\x80\x80\x80\2" + bytes(4 << 20)

    rows, faults = read([numbers, more, deep, large, b""])

    assert len(rows[0]["numbers"]) == 16_384
    assert faults == [
        None,
        "field numbers: more than 16384 items",
        "field deep: more than 16384 items",
        "more than 4 MiB of Protobuf",
        None,
    ]
