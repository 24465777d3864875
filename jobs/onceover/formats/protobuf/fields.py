"""The Arrow type, and so Spark's, that SQL sees of each Protobuf field, and how two types of one field agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from onceover.formats.protobuf.schema import KINDS, ProtobufSchemaError

TIMESTAMP: Final = "google.protobuf.Timestamp"
_TYPES: Final[Mapping[str, pa.DataType]] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), pa.int32()),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), pa.int64()),
    **dict.fromkeys(("uint64", "fixed64"), pa.decimal128(20, 0)),
    "float": pa.float32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
}
_WIDENED: Final[Mapping[str, tuple[str, ...]]] = {
    "int32": ("int64",),
    "uint32": ("int64", "uint64"),
    "sint32": ("sint64",),
    "string": ("bytes",),
}
"""Types of one number's field that take each value of another type as it is, by the other."""


def find_row_type(message: Descriptor) -> pa.StructType:
    """Return the type of SQL's `value`. Raises ProtobufSchemaError for a message within itself, and without fields."""
    return _find_struct(message, "", ())


def _find_struct(message: Descriptor, path: str, within: tuple[str, ...]) -> pa.StructType:
    if message.full_name in within:
        raise ProtobufSchemaError(f"field {path} is a message within itself: take it out")
    if not message.fields:
        raise ProtobufSchemaError(f"message {message.full_name} has no fields: take it out")
    inner = (*within, message.full_name)
    return pa.struct(
        [(each.name, _find_type(each, f"{path}.{each.name}".lstrip("."), inner)) for each in message.fields]
    )


def _find_type(field: FieldDescriptor, path: str, within: tuple[str, ...]) -> pa.DataType:
    if is_map(field):
        key, value = field.message_type.fields
        if key.type != FieldDescriptor.TYPE_STRING:
            raise ProtobufSchemaError(
                f"field {path} is a map by {KINDS[key.type]}, and SQL has them by string: take it out"
            )
        return pa.map_(pa.string(), _find_type(value, path, within))
    if field.message_type is None or field.type == FieldDescriptor.TYPE_GROUP:
        kind = _TYPES.get(KINDS[field.type])
    elif field.message_type.full_name == TIMESTAMP:
        kind = pa.timestamp("us", "UTC")
    else:
        kind = _find_struct(field.message_type, path, within)
    if kind is None:
        raise ProtobufSchemaError(f"field {path} is a {KINDS[field.type]}: take it out")
    return pa.list_(kind) if field.is_repeated else kind


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def list_differences(writer: Descriptor, reader: Descriptor, path: str = "") -> Iterator[tuple[bool, str]]:
    """Yield each difference of what a writer's message and the reader's have under one number, with whether the reader
    takes the writer's."""
    for field in reader.fields:
        name = f"{path}.{field.name}".lstrip(".")
        written = writer.fields_by_number.get(field.number)
        if written is None:
            yield True, f"field {name}: is not written"
            continue
        if written.name != field.name:
            yield True, f"field {name}: was {written.name}"
        kind, wanted = _name_kind(written), _name_kind(field)
        if written.is_repeated != field.is_repeated or (kind != wanted and wanted not in _WIDENED.get(kind, ())):
            yield False, f"field {name}: {kind} is no {wanted}"
        elif kind != wanted:
            yield True, f"field {name}: {kind} is read as {wanted}"
        elif field.message_type is not None:
            yield from list_differences(written.message_type, field.message_type, name)
    for written in writer.fields:
        if written.number not in reader.fields_by_number:
            yield True, f"field {f'{path}.{written.name}'.lstrip('.')}: is left out"


def _name_kind(field: FieldDescriptor) -> str:
    """Return the type, in which two fields of one number must agree; messages agree by their own fields."""
    if field.message_type is not None:
        kind = "timestamp" if field.message_type.full_name == TIMESTAMP else "map" if is_map(field) else "message"
    else:
        kind = KINDS[field.type]
    return f"repeated {kind}" if field.is_repeated and kind != "map" else kind
