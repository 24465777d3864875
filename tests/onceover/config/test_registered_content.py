"""A draft of values and keys whose schemas a registry has, named before them or by headers."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from tests.onceover.config.sampled_records import STAMP, make_records

from onceover.config.pipeline_draft import Draft, draft_pipeline
from onceover.config.pipeline_file import read_pipeline
from onceover.errors import UnreachableError
from onceover.formats.framed import SchemaName
from onceover.formats.undecodable import UndecodableError
from onceover.lines.escapes import escape_headers
from onceover.model.contract import Contract

OLD, NEW, UNKNOWN = (str(UUID(int=number)) for number in (3, 2, 9))
RIDE = {
    "type": "record",
    "name": "Ride",
    "fields": [{"name": "left_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
}
FARED = RIDE | {"fields": [*RIDE["fields"], {"name": "fare", "type": "long", "default": 0}]}
CITY = {"type": "record", "name": "City", "fields": [{"name": "city", "type": "string"}]}
TRIP = 'syntax = "proto3"; package shop; message Other {int64 x = 1;} message Trip {int64 left_at = 1; int64 fare = 2;}'
AVRO: Mapping[SchemaName, object] = {
    OLD: RIDE,
    NEW: FARED,
    5: FARED,
    7: CITY,
    11: RIDE,
    13: "string",
    15: " " * (1 << 20),
}


def write(schema: object, number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, {"left_at": STAMP, "fare": number, "city": "Graz"})  # type: ignore[arg-type]
    return out.getvalue()


def _write_number(number: int) -> bytes:
    """Return the number as Protobuf writes it."""
    return bytes([number & 0x7F | 0x80]) + _write_number(number >> 7) if number > 0x7F else bytes([number])


def name_by(**guids: str) -> bytes:
    """Return headers as Confluent's `HeaderSchemaIdSerializer` writes them."""
    return escape_headers(tuple((f"__{part}_schema_id", b"\1" + UUID(guid).bytes) for part, guid in guids.items()))


def find(name: SchemaName) -> tuple[str, str]:
    if name not in AVRO:
        raise UndecodableError(f"schema {name} is not in the registry")
    return "avro", json.dumps(AVRO[name])


def draft(
    folder: Path, records: pa.Table, find_schema: Callable[[SchemaName], tuple[str, str]] = find
) -> tuple[Draft, Contract]:
    """Return the draft, and the contract that its files have once what it says of keys is taken."""
    drafted = draft_pipeline("t", records, {}, "drafted", find_schema)
    for file, schema in drafted.schema_files.items():
        (folder / file).write_bytes(schema)
    (folder / "drafted.toml").write_text(drafted.toml.replace("# key_", "key_"))
    return drafted, read_pipeline(folder / "drafted.toml").contract


def test_avro_is_drafted_by_the_schema_of_most_headers(tmp_path: Path) -> None:
    """Nulls move the rows of values; a schema's ID, of an older record, is no newer than a GUID."""
    framed = b"\0\0\0\0\x0b" + write(RIDE, 0)
    values = [None, framed, write(RIDE, 0), *(write(FARED, number) for number in range(20)), b"\1"]
    headers = [name_by(value=OLD), None, name_by(value=OLD), *[name_by(value=NEW)] * 20, name_by(value=UNKNOWN)]
    whole = make_records(values, headers=headers)

    drafted, contract = draft(tmp_path, pa.concat_tables([whole.slice(0, 9), whole.slice(9)]))

    assert {file: json.loads(schema) for file, schema in drafted.schema_files.items()} == {"drafted.avsc": FARED}
    assert (contract.format, contract.wire_format, contract.event_time) == ("avro", "confluent", "value.left_at")
    assert [(measure.name, measure.sql) for measure in contract.measures] == [("records", "*"), ("fare", "value.fare")]


def test_protobuf_is_drafted_by_the_message_of_most_headers(tmp_path: Path) -> None:
    body = b"\x08" + _write_number(STAMP) + b"\x10\x05"
    place = escape_headers((("__value_schema_id", b"\1" + UUID(NEW).bytes + b"\2\2"),))

    drafted, contract = draft(tmp_path, make_records([body] * 4, headers=[place] * 4), lambda _: ("protobuf", TRIP))

    assert (list(drafted.schema_files), contract.message) == (["drafted.proto"], "shop.Trip")
    assert contract.event_time == "value.left_at"


def test_schema_that_legible_would_be_too_large_is_kept_as_it_is(tmp_path: Path) -> None:
    letter = {"type": "enum", "name": "Letter", "symbols": [f"a{number}" for number in range(90_000)]}
    schema = RIDE | {"fields": [*RIDE["fields"], {"name": "letter", "type": letter}]}
    text = json.dumps(schema)

    drafted, contract = draft(tmp_path, make_records([b"\0\0\0\0\x05\2\2"] * 3), lambda _: ("avro", text))

    assert drafted.schema_files == {"drafted.avsc": text.encode()}
    assert contract.reader_schema == text


@pytest.mark.parametrize("is_json", [False, True])
def test_compressed_values_named_by_headers_are_seen(tmp_path: Path, is_json: bool) -> None:
    value = gzip.compress(b'{"left_at": 1, "fare": 2}' if is_json else write(FARED, 1))

    _, contract = draft(tmp_path, make_records([value] * 3, headers=[name_by(value=NEW)] * 3))

    assert (contract.compression, contract.measures[-1].sql) == ("gzip", "value.fare")


def test_json_named_by_headers_has_no_frame(tmp_path: Path) -> None:
    _, contract = draft(tmp_path, make_records([b'{"a": 1}'] * 3, headers=[name_by(value=NEW)] * 3))

    assert (contract.format, contract.wire_format, contract.schema.strip()) == ("json", "none", "a BIGINT")


@pytest.mark.parametrize("is_in_header", [False, True])
def test_key_of_a_registry_is_drafted_too(tmp_path: Path, is_in_header: bool) -> None:
    value, key = b"\0\0\0\0\x05" + write(FARED, 1), write(CITY, 1)
    keys = [key if is_in_header else b"\0\0\0\0\x07" + key, None, None]
    with_keys: Mapping[SchemaName, object] = {5: FARED, 7: CITY, NEW: CITY}

    drafted, contract = draft(
        tmp_path,
        make_records([value] * 3, key=keys, headers=[name_by(key=NEW) if is_in_header else None, None, None]),
        lambda name: ("avro", json.dumps(with_keys[name])),
    )

    assert (contract.key_format, json.loads(contract.key_schema)) == ("avro", CITY)
    assert list(drafted.schema_files) == ["drafted.avsc", "drafted_key.avsc"]
    assert "\n# key_format" in drafted.toml, "a key that is no such key would send its record to quarantine"


def test_protobuf_key_is_drafted_beside_json(tmp_path: Path) -> None:
    key = b"\0\0\0\0\x07\2\2\x10\5"  # the second message, of which field 2 is 5

    drafted, contract = draft(
        tmp_path, make_records([b'\0\0\0\0\x05{"a": 1}'] * 3, key=[key] * 3), lambda _: ("protobuf", TRIP)
    )

    assert (contract.format, contract.key_format, contract.key_message) == ("json", "protobuf", "shop.Trip")
    assert list(drafted.schema_files) == ["drafted_key.proto"]


def test_one_moment_beyond_python_is_one_record_without_fields(tmp_path: Path) -> None:
    moment = {"type": "long", "logicalType": "timestamp-micros"}
    schema = RIDE | {"fields": [{"name": "left_at", "type": moment}]}
    values = [*[write(schema, 0)] * 10, b"\xfe" + b"\xff" * 8 + b"\1"]

    drafted, contract = draft(
        tmp_path, make_records(values, headers=[name_by(value=NEW)] * 11), lambda _: ("avro", json.dumps(schema))
    )

    assert (contract.event_time, len(drafted.schema_files)) == ("value.left_at", 1)


@pytest.mark.parametrize("text", ['{"type": "record", "name": "\ud800", "fields": []}', "[" * 100_000])
def test_schema_that_is_no_text_or_too_deep_leaves_keys_alone(tmp_path: Path, text: str) -> None:
    framed = make_records([b'\0\0\0\0\x05{"a": 1}'] * 3, key=[b"\0\0\0\0\x07\2"] * 3)

    _, contract = draft(tmp_path, framed, lambda _: ("avro", text))

    assert (contract.format, contract.key_format) == ("json", "text")


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (b"Graz", None),
        (None, None),
        (b"\0\0\0\1\x2a\5\xf2\0", "schema 298 is not in the registry"),  # a number of 8 bytes, maybe
        (b"\0\0\0\0\7\xff", "it reads none of them"),
        (b"\0\0\0\0\x63\2", "schema 99 is not in the registry"),
        (b"\0\0\0\0\x0d\2a", "it reads none of them"),  # a text alone, which is no record
        (b"\0\0\0\0\x0f\2", "schema 15 has more than 1 MiB, and no contract takes it"),
    ],
)
def test_other_keys_stay_text(tmp_path: Path, key: bytes | None, why: str | None) -> None:
    drafted, contract = draft(tmp_path, make_records([b"\0\0\0\0\x05" + write(FARED, 1)] * 3, key=[key] * 3))

    assert (contract.key_format, list(drafted.schema_files)) == ("text", ["drafted.avsc"])
    assert drafted.doubts == ((f"Keys seem to name a registry's schema, and stay text: {why}.",) if why else ())


def test_tombstones_are_a_doubt(tmp_path: Path) -> None:
    drafted, _ = draft(tmp_path, make_records([b'{"a": 1}', None, b'{"a": 2}']))

    assert '1 tombstone among 3 records: without tombstone = "record" they go to quarantine.' in drafted.doubts


def test_keys_of_a_registry_that_is_away_are_a_doubt(tmp_path: Path) -> None:
    def find_away(name: SchemaName) -> tuple[str, str]:
        raise UnreachableError("ONCEOVER_REGISTRY is not set")

    framed = make_records([b'\0\0\0\0\x05{"a": 1}'] * 3, key=[b"\0\0\0\0\x07" + write(CITY, 1)] * 3)
    drafted, contract = draft(tmp_path, framed, find_away)

    assert (contract.format, contract.wire_format, contract.key_format) == ("json", "confluent", "text")
    assert "Keys seem to name a registry's schema, and stay text: ONCEOVER_REGISTRY is not set." in drafted.doubts
