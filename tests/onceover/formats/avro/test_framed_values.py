"""Values in Confluent's wire format, each by the schema of its ID, in Arrow arrays of any layout."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.onceover.formats.avro.encoding import encode_bytes, encode_long
from tests.onceover.formats.avro.reading import KnownWriters, frame, list_values
from tests.onceover.formats.avro.resolving import make_field, make_one, make_record

from onceover.errors import RegistryAwayError
from onceover.formats.avro.values import AvroReader
from onceover.formats.framed import GuidHeader, SchemaName, WriterUnknownError, find_guids
from onceover.formats.undecodable import UndecodableError
from onceover.lines.escapes import escape_headers

INT, LONG, TEXT = make_one("int"), make_one("long"), make_one("string")
MOST = (1 << 32) - 1
NO_FRAME = "not in Confluent's wire format"


class SomeWriters(KnownWriters):
    """Schemas by ID; any other of an even number does not exist, and of an odd number is not known yet."""

    asked: list[int]

    def __init__(self, schemas: dict[int, str]) -> None:
        super().__init__(schemas)
        self.asked = []

    def __len__(self) -> int:
        return 0

    def read(self, name: SchemaName) -> str:
        if isinstance(name, str):
            return LONG
        schema_id = name
        self.asked.append(schema_id)
        if schema_id in self.schemas:
            return self.schemas[schema_id]
        if schema_id % 2:
            raise RegistryAwayError(f"registry away: {schema_id}")
        raise UndecodableError(f"no schema {schema_id}")


def read(values: list[bytes | None] | pa.Array, reader: str, schemas: dict[int, str]) -> tuple[list[Any], list[Any]]:
    array = values if isinstance(values, pa.Array) else pa.array(values, pa.binary())
    rows, faults = AvroReader(reader, SomeWriters(schemas)).read(array)
    assert len(rows) == len(faults) == len(array)
    rows.validate(full=True)
    return list_values(rows), faults.to_pylist()


def test_values_are_read_by_the_schemas_that_wrote_them() -> None:
    values = [frame(1, b"\2"), None, frame(2, b"\4"), frame(1, b"\6"), frame(3, b"\0"), frame(2, b""), frame(9, b"\2")]
    schemas = {1: INT, 2: LONG, 3: TEXT, 9: "{"}

    rows, faults = read(values, LONG, schemas)

    assert rows == [{"v": 1}, None, {"v": 2}, {"v": 3}, None, None, None]
    broken = "schema 9: no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    assert faults == [None] * 4 + ["schema 3: field v: string is no long", "schema 2: Avro cut off", broken]


@pytest.mark.parametrize("schema_id", [0, 1, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 31, MOST])
def test_id_of_any_size_is_found(schema_id: int) -> None:
    assert read([frame(schema_id, b"\4")], LONG, {schema_id: INT}) == ([{"v": 2}], [None])


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0\0\0", b"\1\0\0\0\1\2", b"{}", b'{"v": 1}'])
def test_value_without_the_frame_is_refused(value: bytes) -> None:
    values = [value, frame(1, b"\2"), value]

    assert read(values, LONG, {1: INT}) == ([None, {"v": 1}, None], [NO_FRAME, None, NO_FRAME])


def test_frame_with_nothing_behind_it_is_a_value_of_no_bytes() -> None:
    assert read([frame(1, b"")], LONG, {1: INT}) == ([None], ["schema 1: Avro cut off"])
    reader = make_record(make_field("v", "long", 5))
    assert read([frame(1, b"")], reader, {1: make_record()}) == ([{"v": 5}], [None])


def test_id_that_does_not_exist_is_a_reason() -> None:
    values = [frame(8, b"\2"), frame(1, b"\2"), frame(8, b"\2"), frame(6, b"")]

    rows, faults = read(values, LONG, {1: INT})

    assert rows == [None, {"v": 1}, None, None]
    assert faults == ["no schema 8", None, "no schema 8", "no schema 6"]


def test_first_row_of_a_writer_not_known_yet_is_named() -> None:
    values = [None, b"x", frame(8, b""), frame(1, b"\2"), frame(7, b"\2"), frame(5, b"\2"), frame(7, b"\2")]
    with pytest.raises(WriterUnknownError, match="registry away: 7") as raised:
        read(values, LONG, {1: INT})
    assert raised.value.row == 4
    with pytest.raises(WriterUnknownError) as raised:
        read(pa.array(values, pa.binary()).slice(3), LONG, {1: INT})
    assert raised.value.row == 1


def test_each_id_is_looked_up_once_a_batch() -> None:
    writers = SomeWriters({1: INT, 2: LONG})
    values = pa.array([frame(1 + number % 2, b"\2") for number in range(100)], pa.binary())

    AvroReader(LONG, writers).read(values)

    assert writers.asked == [1, 2]


def test_thousand_ids_in_one_batch_are_read() -> None:
    chance = random.Random(3)
    schemas = {schema_id: chance.choice((INT, LONG, TEXT)) for schema_id in chance.sample(range(MOST), 1_000)}
    values: list[bytes | None] = []
    expected: list[Any] = []
    for schema_id in chance.choices(list(schemas), k=5_000):
        if chance.random() < 0.1:
            values.append(None)
            expected.append((None, None))
            continue
        number = chance.getrandbits(30)
        is_text = schemas[schema_id] == TEXT
        values.append(frame(schema_id, encode_bytes(b"x") if is_text else encode_long(number)))
        why = f"schema {schema_id}: field v: string is no long"
        expected.append((None, why) if is_text else ({"v": number}, None))

    rows, faults = read(values, LONG, schemas)

    assert list(zip(rows, faults, strict=True)) == expected


@pytest.mark.parametrize("writers", [True, False])
def test_slice_of_an_array_reads_as_its_values(writers: bool) -> None:
    plain: list[bytes | None] = [
        encode_bytes(bytes([65 + n]) * n) if n % 4 else (None if n % 8 else b"") for n in range(25)
    ]
    values = [value and frame(1, value) for value in plain] if writers else plain
    array = pa.array(values, pa.binary())
    for start, length in ((0, 25), (1, 24), (5, 3), (4, 1), (24, 1), (25, 0), (7, 0)):
        sliced = array.slice(start, length)
        reader = AvroReader(TEXT, KnownWriters({1: TEXT}) if writers else None)
        rows, faults = reader.read(sliced)
        alone = [reader.read(pa.array([value], pa.binary())) for value in values[start : start + length]]

        assert list_values(rows) == [list_values(row)[0] for row, _ in alone]
        assert faults.to_pylist() == [fault[0].as_py() for _, fault in alone]


def test_array_of_any_offset_and_unused_bytes_is_read() -> None:
    """The first value starts within its buffer, a null has bytes of its own, and more follow the last."""
    data = b"??" + b"\2" + b"\xff\xff" + b"\4" + b"\xff"
    bounds = np.array([0, 2, 3, 5, 6], np.int32)
    valid = pa.py_buffer(bytes([0b1011]))
    array = pa.Array.from_buffers(pa.binary(), 3, [valid, pa.py_buffer(bounds), pa.py_buffer(data)], offset=1)

    rows, faults = AvroReader(LONG).read(array)

    assert list_values(rows) == [{"v": 1}, None, {"v": 2}]
    assert faults.to_pylist() == [None] * 3


@pytest.mark.parametrize("bounds", [np.zeros(1, np.int32).tobytes(), b""])
def test_empty_array_has_no_rows(bounds: bytes) -> None:
    array = pa.Array.from_buffers(pa.binary(), 0, [None, pa.py_buffer(bounds), pa.py_buffer(b"")])
    for writers in (None, KnownWriters({})):
        rows, faults = AvroReader(LONG, writers).read(array)
        assert (rows, faults) == (pa.array([], pa.struct([("v", pa.int64())])), pa.array([], pa.string()))


def test_array_of_nulls_has_neither_rows_nor_reasons() -> None:
    assert read([None] * 3, LONG, {}) == ([None] * 3, [None] * 3)
    rows, faults = AvroReader(LONG).read(pa.nulls(3, pa.binary()))
    assert (rows.null_count, faults.null_count) == (3, 3)


def test_reason_without_writers_has_no_id() -> None:
    rows, faults = AvroReader(LONG).read(pa.array([b"", b"\2", b"\2\2"], pa.binary()))

    assert list_values(rows) == [None, {"v": 1}, None]
    assert faults.to_pylist() == ["Avro cut off", None, "bytes behind the Avro value"]


GUID = "89791762-2336-4186-9674-299b90a802e2"
IN_HEADER = b"\1" + bytes.fromhex(GUID.replace("-", ""))


def test_schema_may_be_named_by_a_guid_in_a_header() -> None:
    """As Confluent's `HeaderSchemaIdSerializer` writes it: 1, and the GUID's 16 bytes."""
    named = escape_headers((("__value_schema_id", IN_HEADER), ("trace", b"x")))
    of_key = escape_headers((("__key_schema_id", IN_HEADER),))
    short = escape_headers((("__value_schema_id", IN_HEADER[:-1]),))
    other = escape_headers((("__value_schema_id", b"\0" + IN_HEADER[1:]),))
    twice = escape_headers((("__value_schema_id", b"\1" + bytes(16)), ("__value_schema_id", IN_HEADER)))
    headers = pa.array([named, of_key, short, other, twice, None, named, named], pa.binary())
    values = [b"\2", frame(1, b"\4"), frame(1, b"\6"), b"\2", b"\x08", frame(1, b"\2"), None, b"\2\2"]

    guids = find_guids(headers, "value")
    rows, faults = AvroReader(LONG, SomeWriters({1: INT})).read(pa.array(values, pa.binary()), guids)

    assert {row: header.guid for row, header in guids.items()} == dict.fromkeys((0, 4, 6, 7), GUID)
    assert list_values(rows) == [{"v": 1}, {"v": 2}, {"v": 3}, None, {"v": 4}, {"v": 1}, None, None]
    behind = f"schema {GUID}: bytes behind the Avro value"
    assert faults.to_pylist() == [None, None, None, NO_FRAME, None, None, None, behind]
    assert find_guids(headers, "key") == {1: GuidHeader(GUID, b"")}
