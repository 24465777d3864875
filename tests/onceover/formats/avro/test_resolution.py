"""Values of one schema read as another, where the specification has a rule: equal to fastavro's."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from tests.onceover.formats.avro.resolving import make_field, make_one, make_record, read_all, read_with_fastavro, write

LONGS = [0, 1, -1, 1 << 24, (1 << 24) + 1, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63), 7_735_898_573_543_256]
INTS = [0, 1, -1, (1 << 24) + 1, (1 << 31) - 1, -(1 << 31)]
DATE = {"type": "int", "logicalType": "date"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
INT_ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
NAMED = {"type": "record", "name": "N", "fields": [{"name": "a", "type": "int"}]}
WIDER = {"type": "record", "name": "N", "fields": [{"name": "b", "type": "string", "default": "-"},
                                                  {"name": "a", "type": "double"}]}  # fmt: skip


@pytest.mark.parametrize(
    ("writer", "reader", "values"),
    [
        ("int", "long", INTS),
        ("int", "double", INTS),
        ("long", "double", LONGS),
        ("float", "double", [0.0, -0.0, 1.5, 3.4028234663852886e38, 1e-45]),
        ("string", "bytes", ["", "a", "ø漢"]),
        ("bytes", "string", [b"", b"a", "ø漢".encode()]),
        (["null", "int"], ["null", "long"], [None, 5]),
        (["int", "null"], ["null", "long"], [None, 5]),
        ("int", ["null", "long"], INTS),
        (["int", "null"], ["null", "double"], [None, 5]),
        ("null", ["null", "string"], [None]),
        ("string", ["null", "bytes"], ["x"]),
        (["int"], "long", INTS),
        (["int", "long", "float"], "double", [1, 1 << 40]),
        (["null"], ["null", "int"], [None]),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "double"}, [[], [1, 2]]),
        ({"type": "array", "items": ["null", "int"]}, {"type": "array", "items": ["long", "null"]}, [[None, 1]]),
        ({"type": "map", "values": "string"}, {"type": "map", "values": ["null", "bytes"]}, [{}, {"a": "b"}]),
        (NAMED, WIDER, [{"a": 1}]),
        (["null", NAMED], ["null", WIDER], [{"a": 1}, None]),
        ({"type": "array", "items": NAMED}, {"type": "array", "items": WIDER}, [[], [{"a": 1}, {"a": 2}]]),
        (INT_ENUM, INT_ENUM | {"symbols": ["C", "X", "B", "A"]}, ["A", "B", "C"]),
        (INT_ENUM, INT_ENUM | {"symbols": ["B", "A"], "default": "B"}, ["A", "B", "C"]),
    ],
    ids=str,
)
def test_value_is_read_as_fastavro_reads_it(writer: Any, reader: Any, values: list[Any]) -> None:
    schemas = make_one(writer), make_one(reader)
    data = write(schemas[0], [{"v": value} for value in values])

    found, expected = read_all(data, schemas[1], schemas[0]), read_with_fastavro(data, *schemas)

    assert json.dumps(found, default=str, sort_keys=True) == json.dumps(expected, default=str, sort_keys=True)


@pytest.mark.parametrize(("writer", "values"), [("int", INTS), ("long", LONGS)])
def test_number_becomes_the_float_next_to_it(writer: str, values: list[int]) -> None:
    """fastavro makes a double of it, which no float of Avro holds."""
    data = write(make_one(writer), [{"v": value} for value in values])

    rows = read_all(data, make_one("float"), make_one(writer))

    assert rows == [{"v": float(np.float32(value))} for value in values]


@pytest.mark.parametrize(
    ("writer", "reader", "value", "read_as"),
    [
        (DATE, "int", 3, 3),
        (DATE, "long", 3, 3),
        (DATE, "double", 3, 3.0),
        ("int", DATE, 3, 3),
        ("long", MICROS, 3, 3),
        (MICROS, "long", 3, 3),
        (MICROS, "float", 3, 3.0),
        ("long", MICROS | {"logicalType": "timestamp-millis"}, 3, 3000),
        (MICROS, {"type": "long", "logicalType": "unknown"}, 3, 3),
        ("bytes", {"type": "bytes", "logicalType": "decimal", "precision": 3}, b"\5", 5),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3}, "bytes", b"\5", b"\5"),
        ("string", {"type": "string", "logicalType": "uuid"}, "x", "x"),
    ],
    ids=str,
)
def test_logical_type_of_one_side_only_is_the_readers(writer: Any, reader: Any, value: Any, read_as: Any) -> None:
    plain = writer["type"] if isinstance(writer, dict) else writer
    data = write(make_one(plain), [{"v": value}])

    assert read_all(data, make_one(reader), make_one(writer)) == [{"v": read_as}]


def test_fields_are_added_removed_and_reordered() -> None:
    """By chance, as fastavro reads them; what is removed is skipped."""
    kinds: dict[str, tuple[Any, Any]] = {
        "int": (7, 3), "string": ("x", "y"), "double": (1.5, 2.5), "boolean": (True, False)
    }  # fmt: skip
    for number in range(50):
        chance = random.Random(number)
        fields = [(f"f{place}", chance.choice(list(kinds))) for place in range(8)]
        written, wanted = chance.sample(fields, chance.randint(1, 8)), chance.sample(fields, chance.randint(1, 8))
        writer = make_record(*(make_field(name, kind) for name, kind in written))
        reader = make_record(*(make_field(name, kind, kinds[kind][1]) for name, kind in wanted))
        data = write(writer, [{name: kinds[kind][0] for name, kind in written}] * 2)
        assert read_all(data, reader, writer) == read_with_fastavro(data, writer, reader), f"fields {number}"


def test_field_and_record_are_found_by_their_aliases() -> None:
    inner = {"type": "record", "name": "Old", "fields": [make_field("a", "int")]}
    renamed = {"type": "record", "name": "New", "namespace": "n", "aliases": ["o.Old"],
               "fields": [make_field("b", "long", aliases=["x", "a"])]}  # fmt: skip
    writer = make_record(make_field("inner", inner), name="First")
    reader = make_record(make_field("nested", renamed, aliases=["inner"]), name="Second", aliases=["First"])

    assert read_all(write(writer, [{"inner": {"a": 5}}]), reader, writer) == [{"nested": {"b": 5}}]


def test_enum_and_fixed_are_found_by_their_aliases() -> None:
    enum, fixed = {"type": "enum", "name": "E", "symbols": ["A"]}, {"type": "fixed", "name": "F", "size": 1}
    writer = make_record(make_field("e", enum), make_field("f", fixed))
    renamed = [kind | {"name": "Z" + str(kind["name"]), "aliases": [kind["name"]]} for kind in (enum, fixed)]
    reader = make_record(make_field("e", renamed[0]), make_field("f", renamed[1]))

    assert read_all(write(writer, [{"e": "A", "f": b"x"}]), reader, writer) == [{"e": "A", "f": b"x"}]


@pytest.mark.parametrize(
    ("fields", "row"),
    [
        ([("a", ()), ("b", ("a",))], {"a": 1, "b": 9}),
        ([("b", ("a",)), ("a", ())], {"b": 9, "a": 1}),
        ([("b", ("a",)), ("c", ("a",))], {"b": 1, "c": 9}),
        ([("b", ("z", "a"))], {"b": 1}),
    ],
    ids=str,
)
def test_field_of_the_writer_is_read_once(fields: list[tuple[str, tuple[str, ...]]], row: dict[str, int]) -> None:
    """By its name first, then by the first field that has it for an alias; the others have their defaults."""
    writer = make_one("int").replace('"v"', '"a"')
    reader = make_record(*(make_field(name, "int", 9, aliases) for name, aliases in fields))

    assert read_all([b"\2"], reader, writer) == [row]


def test_names_match_without_their_namespaces() -> None:
    writer, reader = make_one("int"), make_one("long").replace('"R"', '"shop.R"')

    assert read_all([b"\2"], reader, writer) == [{"v": 1}]
