"""The Arrow type, and so Spark's, that SQL sees of each Avro type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from onceover.formats.avro.schema import AvroSchemaError, AvroType

MAX_PRECISION: Final = 38
_BY_LOGICAL: Final[Mapping[str, pa.DataType]] = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_BY_KIND: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}


def find_row_type(schema: AvroType) -> pa.StructType:
    """Return the type of SQL's `value`. Raises AvroSchemaError, with the field, for what Spark has no type for."""
    if schema.kind != "record":
        raise AvroSchemaError(f"it is of type {schema}, and not a record")
    return find_type(schema, "", ())


def find_type(schema: AvroType, path: str = "", within: tuple[AvroType, ...] = ()) -> pa.DataType:
    if schema in within:
        raise AvroSchemaError(f"field {path} is a record within itself: take the field out")
    if schema.kind == "record":
        inner = (*within, schema)
        kinds = [(each.name, find_type(each.type, f"{path}.{each.name}".lstrip("."), inner)) for each in schema.fields]
        if not kinds:
            raise AvroSchemaError(f"record {schema.name} has no fields: take it out")
        return pa.struct(kinds)
    if schema.kind == "union":
        return find_type(find_only(schema, path), path, within)
    if schema.kind == "array":
        return pa.list_(find_type(schema.inner[0], path, within))
    if schema.kind == "map":
        return pa.map_(pa.string(), find_type(schema.inner[0], path, within))
    if schema.logical == "decimal":
        if schema.precision > MAX_PRECISION:
            raise AvroSchemaError(f"field {path} is a {schema}, and SQL has {MAX_PRECISION} digits: take the field out")
        return pa.decimal128(schema.precision, schema.scale)
    if schema.kind == "null":
        raise AvroSchemaError(f"field {path} is always null: take the field out")
    return _BY_LOGICAL.get(schema.logical) or _BY_KIND[schema.kind]


def find_only(union: AvroType, path: str) -> AvroType:
    """Return the one type of a union besides null."""
    kinds = [branch for branch in union.inner if branch.kind != "null"]
    if len(kinds) != 1:
        raise AvroSchemaError(f"field {path} is a {union}: take the field out, or leave one type and null")
    return kinds[0]
