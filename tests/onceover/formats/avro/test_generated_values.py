"""Values of every Avro type, by chance, are what fastavro reads of the same bytes."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
import pytest
from tests.onceover.formats.avro.avro_kinds import AvroKind, render
from tests.onceover.formats.avro.decoding import decode, make_decimal
from tests.onceover.formats.avro.drawing import Drawing
from tests.onceover.formats.avro.encoding import Chosen, encode
from tests.onceover.formats.avro.reading import read

EACH = 100
SCHEMAS = [pytest.param(50, id="few"), pytest.param(500, id="all", marks=pytest.mark.rare)]


def make_plain(kind: AvroKind, value: Any, *, is_in_micros: bool = False) -> Any:
    """Return a value that `encode` takes as fastavro has it, or, in microseconds, as SQL does."""
    if isinstance(value, Chosen):
        return make_plain(kind.inner[value.number], value.value, is_in_micros=is_in_micros)
    if kind.logical == "decimal":
        return make_decimal(value, kind.scale) if isinstance(value, int) else value
    if is_in_micros and kind.logical.endswith("timestamp-millis"):
        return value * 1000
    if value is None:
        return None
    if kind.kind == "union":
        return make_plain(
            next(branch for branch in kind.inner if branch.kind != "null"), value, is_in_micros=is_in_micros
        )
    if kind.kind == "record":
        return {name: make_plain(inner, value[name], is_in_micros=is_in_micros) for name, inner in kind.fields}
    if kind.kind == "array":
        return [make_plain(kind.inner[0], item, is_in_micros=is_in_micros) for item in value]
    if kind.kind == "map":
        return {key: make_plain(kind.inner[0], item, is_in_micros=is_in_micros) for key, item in value.items()}
    return value


def read_with_fastavro(kind: AvroKind, values: list[bytes], reader: AvroKind | None = None) -> list[Any]:
    parsed = fastavro.parse_schema(json.loads(render(kind, only_decimals=True)))
    wanted = fastavro.parse_schema(json.loads(render(reader, only_decimals=True))) if reader else None
    found = [fastavro.schemaless_reader(io.BytesIO(value), parsed, wanted) for value in values]
    return [make_plain(reader or kind, value, is_in_micros=True) for value in found]


@pytest.mark.parametrize("count", SCHEMAS)
def test_values_of_any_type_equal_those_of_fastavro(count: int) -> None:
    for number in range(count):
        drawing = Drawing(random.Random(number))
        kind = drawing.draw_record()
        values = [encode(kind, drawing.draw_value(kind), drawing.chance) for _ in range(EACH)]

        found, reasons = read(values, render(kind))

        assert reasons == [None] * EACH, f"schema {number}"
        assert repr(found) == repr(read_with_fastavro(kind, values)), f"schema {number}"


@pytest.mark.parametrize("count", SCHEMAS)
def test_values_beside_skipped_fields_equal_those_of_fastavro(count: int) -> None:
    for number in range(count):
        drawing = Drawing(random.Random(-number - 1))
        reader = drawing.draw_record(fields=2)
        more = [(f"x{place}", drawing.draw(reader.namespace, 0, is_free=True)) for place in range(3)]
        fields = drawing.chance.sample([*reader.fields, *more], 5)
        writer = AvroKind("record", name=reader.name, namespace=reader.namespace, fields=fields)
        values = [encode(writer, drawing.draw_value(writer), drawing.chance) for _ in range(EACH)]

        found, reasons = read(values, render(reader), render(writer))

        assert reasons == [None] * EACH, f"schema {number}"
        assert repr(found) == repr(read_with_fastavro(writer, values, reader)), f"schema {number}"


def test_encoder_writes_the_bytes_of_fastavro() -> None:
    for number in range(100):
        drawing = Drawing(random.Random(number))
        kind = drawing.draw_record()
        parsed = fastavro.parse_schema(json.loads(render(kind, only_decimals=True)))
        for value in [drawing.draw_value(kind) for _ in range(10)]:
            written = io.BytesIO()
            fastavro.schemaless_writer(written, parsed, make_plain(kind, value))
            assert encode(kind, value) == written.getvalue(), f"schema {number}"


def test_strict_decoder_reads_the_values_of_fastavro() -> None:
    for number in range(100):
        drawing = Drawing(random.Random(number))
        kind = drawing.draw_record()
        values = [encode(kind, drawing.draw_value(kind), drawing.chance) for _ in range(10)]
        found = [make_plain(kind, decode(kind, value), is_in_micros=True) for value in values]
        assert repr(found) == repr(read_with_fastavro(kind, values)), f"schema {number}"


def test_drawn_types_are_all_there_are() -> None:
    kinds: set[tuple[str, str]] = set()

    def walk(kind: AvroKind) -> None:
        kinds.add((kind.kind, kind.logical))
        for inner in [*kind.inner, *(each for _, each in kind.fields)]:
            walk(inner)

    for number in range(100):
        walk(Drawing(random.Random(number)).draw_record())
    times = {("int", "date"), ("int", "time-millis"), ("long", "time-micros")}
    stamps = {
        ("long", f"{local}timestamp-{unit}") for local in ("", "local-") for unit in ("millis", "micros", "nanos")
    }
    fixed = {("fixed", logical) for logical in ("", "decimal", "uuid", "duration")}
    plain = [
        "null",
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "bytes",
        "string",
        "enum",
        "union",
        "array",
        "map",
        "record",
    ]
    others = {("bytes", "decimal"), ("string", "uuid")}
    assert kinds == {(kind, "") for kind in plain} | times | stamps | fixed | others
