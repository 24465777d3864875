"""Two schemas of one record, and what fastavro reads of one as the other."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
from tests.onceover.formats.avro.reading import read

MISSING = object()


def make_field(name: str, kind: Any, default: object = MISSING, aliases: Sequence[str] = ()) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "type": kind}
    made |= {} if default is MISSING else {"default": default}
    return made | ({"aliases": list(aliases)} if aliases else {})


def make_record(*fields: dict[str, Any], name: str = "R", aliases: Sequence[str] = ()) -> str:
    return json.dumps({"type": "record", "name": name, "fields": fields, "aliases": list(aliases)})


def make_one(kind: Any) -> str:
    """Return the schema of a record with one field, v."""
    return make_record(make_field("v", kind))


def write(schema: str, records: Sequence[Any]) -> list[bytes]:
    parsed = fastavro.parse_schema(json.loads(schema))
    written = []
    for record in records:
        data = io.BytesIO()
        fastavro.schemaless_writer(data, parsed, record)
        written.append(data.getvalue())
    return written


def read_with_fastavro(values: Sequence[bytes], writer: str, reader: str) -> list[Any]:
    parsed, wanted = fastavro.parse_schema(json.loads(writer)), fastavro.parse_schema(json.loads(reader))
    return [fastavro.schemaless_reader(io.BytesIO(value), parsed, wanted) for value in values]


def read_all(values: Sequence[bytes], reader: str, writer: str) -> list[Any]:
    """Return the rows of values that are all read."""
    rows, reasons = read(values, reader, writer)
    assert reasons == [None] * len(values)
    return rows
