"""Protobuf values as rows of the reader's message, each by the schema that wrote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from onceover.errors import RegistryAwayError
from onceover.formats.framed import (
    HEAD,
    NO_GUIDS,
    GuidHeader,
    SchemaName,
    Writers,
    WriterUnknownError,
    read_payload,
)
from onceover.formats.protobuf.fields import TIMESTAMP, find_row_type, is_map, list_differences
from onceover.formats.protobuf.schema import ProtobufSchemaError, find_by_index, find_message
from onceover.formats.undecodable import LARGEST, UndecodableError

_NO_MESSAGE: Final = "not a Protobuf message"
_NO_INDEX: Final = "no message index behind the schema's ID"
_MOST_ITEMS: Final = 16_384
"""Items of a repeated field or a map: each becomes an object of Python."""
_MOST_INDEXES: Final = 32
_LAST_SECOND: Final = (1 << 63) // 1_000_000 - 1


@dataclass(frozen=True, slots=True)
class ProtobufReader:
    """Reads values by the message of that name of `reader`, a schema. With `writers`, values are in Confluent's wire
    format; without, they are messages alone."""

    reader: str
    message: str = ""
    writers: Writers | None = None

    @property
    def type(self) -> pa.StructType:
        return find_row_type(find_message(self.reader, self.message))

    def read(self, values: pa.Array, guids: Mapping[int, GuidHeader] = NO_GUIDS) -> tuple[pa.Array, pa.Array]:
        """Return a row for each of these binary values, and why one is none; both are null of a null. `guids` are those
        that headers name, by row. Raises WriterUnknownError."""
        descriptor = find_message(self.reader, self.message)
        make, convert = GetMessageClass(descriptor), _find_converter(self.reader, self.message)
        rows: list[Any] = []
        faults: list[str | None] = []
        for number, value in enumerate(values):
            row, fault, of_schema = None, None, ""
            if value.is_valid:
                try:
                    of_schema, data = self._read_message(value.as_py(), guids.get(number))
                    row = convert(make.FromString(data))
                except RegistryAwayError as error:
                    raise WriterUnknownError(number, error) from error
                except DecodeError:
                    fault = of_schema + _NO_MESSAGE
                except UndecodableError as error:
                    fault = of_schema + str(error)
            rows.append(row)
            faults.append(fault)
        return pa.array(rows, self.type), pa.array(faults, pa.string())

    def _read_message(self, value: bytes, header: GuidHeader | None) -> tuple[str, bytes]:
        """Return the schema's name for reasons, and what follows its ID and the message's place in it."""
        if len(value) > LARGEST:
            raise UndecodableError(f"more than {LARGEST >> 20} MiB of Protobuf")
        if self.writers is None:
            return "", value
        name: SchemaName = header.guid if header else int.from_bytes(value[1:HEAD])
        placed = header.rest if header else read_payload(value)
        index, start = _read_index(placed)
        fault = _judge(self.writers.read(name), index, self.reader, self.message)
        if fault is not None:
            raise UndecodableError(f"schema {name}: {fault}")
        return f"schema {name}: ", value if header else placed[start:]


def _read_index(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Return the places of the message in the schema, from the outermost in, and where they end: zigzag numbers after
    their count, or a zero for the first message."""
    count, at = _read_number(payload, 0)
    if not 0 <= count <= _MOST_INDEXES:
        raise UndecodableError(_NO_INDEX)
    index = []
    for _ in range(count):
        place, at = _read_number(payload, at)
        index.append(place)
    return tuple(index) or (0,), at


def name_message(schema: str, placed: bytes) -> str:
    """Return the full name of the message of that schema whose place these bytes begin with, "" of none."""
    try:
        found = find_by_index(schema, _read_index(placed)[0])
    except UndecodableError:
        return ""
    return found.full_name if found else ""


def _read_number(payload: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if at + shift // 7 >= len(payload):
            break
        byte = payload[at + shift // 7]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), at + shift // 7 + 1
    raise UndecodableError(_NO_INDEX)


@lru_cache(maxsize=2048)
def _judge(writer: str, index: tuple[int, ...], reader: str, message: str) -> str | None:
    """Return why the reader does not take that message of the writer's schema, None if it does."""
    try:
        written = find_by_index(writer, index)
    except ProtobufSchemaError as error:
        return str(error)
    wanted = find_message(reader, message)
    if written is None or written.full_name != wanted.full_name:
        named = written.full_name if written else ".".join(map(str, index))
        return f"message {named} is no {wanted.full_name}"
    return next((what for is_read, what in list_differences(written, wanted) if not is_read), None)


def explain_difference(writer: str, reader: str, message: str) -> tuple[bool, str]:
    """Return whether messages of that name of the writer's schema are read, and how they differ from the reader's."""
    wanted = find_message(reader, message)
    try:
        found = list(list_differences(find_message(writer, wanted.full_name), wanted))
    except ProtobufSchemaError as error:
        return False, str(error)
    refused = [what for is_read, what in found if not is_read]
    return not refused, "; ".join(refused or [what for _, what in found])


@lru_cache(maxsize=64)
def _find_converter(schema: str, message: str) -> Callable[[Message], Any]:
    return _make_converter(find_message(schema, message))


def _make_converter(descriptor: Descriptor) -> Callable[[Any], Any]:
    """Return what makes a row of a message, and raises UndecodableError if it has a known number of another type."""
    getters = [
        (field.name, field.name if field.has_presence else None, _make_getter(field)) for field in descriptor.fields
    ]
    known = frozenset(descriptor.fields_by_number)

    def convert(message: Any) -> dict[str, Any]:
        for unknown in UnknownFieldSet(message):
            if unknown.field_number in known:
                raise UndecodableError(
                    f"field {descriptor.fields_by_number[unknown.field_number].name}: of another type"
                )
        return {
            name: None
            if presence is not None and not message.HasField(presence)
            else getattr(message, name)
            if get is None
            else get(getattr(message, name))
            for name, presence, get in getters
        }

    return convert


def _make_getter(field: FieldDescriptor) -> Callable[[Any], Any]:
    if not field.is_repeated:
        return _make_single(field)
    keyed = is_map(field)
    of_one = _make_single(field.message_type.fields_by_name["value"] if keyed else field)

    def get(items: Any) -> list[Any]:
        if len(items) > _MOST_ITEMS:
            raise UndecodableError(f"field {field.name}: more than {_MOST_ITEMS} items")
        return [(key, of_one(items[key])) for key in items] if keyed else list(map(of_one, items))

    return get


def _make_single(field: FieldDescriptor) -> Callable[[Any], Any]:
    if field.message_type is not None:
        return _read_timestamp if field.message_type.full_name == TIMESTAMP else _make_converter(field.message_type)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}

        def name(number: int) -> str:
            if number not in names:
                raise UndecodableError(f"field {field.name}: a number that the reader's enum lacks")
            return str(names[number])

        return name
    if field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64):
        return Decimal
    return _keep


def _keep(value: Any) -> Any:
    return value


def _read_timestamp(value: Any) -> int:
    if abs(value.seconds) > _LAST_SECOND or not 0 <= value.nanos < 1_000_000_000:
        raise UndecodableError("no timestamp")
    return int(value.seconds) * 1_000_000 + int(value.nanos) // 1000
