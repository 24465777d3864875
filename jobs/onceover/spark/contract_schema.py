"""The type of SQL's `value` where it has fields: by the contract's DDL, or by its schema's file."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from onceover.config.mistakes import suggest_name
from onceover.formats.avro import arrow_types
from onceover.formats.avro.schema import AvroSchemaError, parse_schema
from onceover.formats.protobuf import fields
from onceover.formats.protobuf.schema import ProtobufSchemaError, find_message
from onceover.model.contract import SCHEMA_FORMATS, Contract
from onceover.spark.failure import extract_reason
from onceover.spark.field_path import find_paths, list_paths, quote_path, write_path
from onceover.spark.json_fields import READABLE_TYPES, list_unreadable_types
from onceover.spark.json_value import parse_document

_DDL_REMEDY = 'write it like "origin STRING, dep_delay INT"'
_FILE_REMEDY = "correct the schema: docs/formats.md says what SQL sees of each type"
_UNFIT = (AvroSchemaError, ProtobufSchemaError)
Refuse = Callable[[str, str, str], None]
"""Takes a key of the contract, what is wrong with it, and the remedy."""


def find_schema(spark: SparkSession, contract: Contract, refuse: Refuse) -> StructType:
    """Return the fields of `value`, none where the format or the contract has none that can be read."""
    try:
        find_key_type(contract)
    except _UNFIT as error:
        refuse("key_schema_file", str(error), _FILE_REMEDY)
    if contract.has_json:
        key, schema = "schema", _parse_ddl(spark, contract, refuse)
    elif contract.has_fields:
        key, schema = "schema_file", _parse_file(contract, refuse)
    else:
        return StructType()
    if schema is None:
        return StructType()
    paths = list(list_paths(schema))
    lowered = [tuple(name.lower() for name in path) for path in paths]
    for path in sorted({path for path in lowered if lowered.count(path) > 1}):
        refuse(key, f"field {'.'.join(path)} is declared twice; case does not matter", "rename one")
    for name in contract.required:
        meant = find_paths(schema, name)
        if not meant:
            known = [write_path(schema, path) for path in paths]
            refuse("required", f"the schema has no field {name}", suggest_name(name, known))
        elif len(meant) > 1:
            both = " and ".join(sorted(map(quote_path, meant)))
            refuse("required", f"{name} may be {both}", "write one of them, with its backquotes")
    return schema


def _parse_ddl(spark: SparkSession, contract: Contract, refuse: Refuse) -> StructType | None:
    try:
        schema = StructType.fromDDL(contract.schema)
        if not isinstance(schema, StructType):  # a single type without a name is DDL as well
            refuse("schema", f"{contract.schema!r} names no field", _DDL_REMEDY)
            return None
        spark.range(0).select(parse_document(F.lit("{}"), schema))
    except PySparkException as error:
        refuse("schema", extract_reason(error), _DDL_REMEDY)
        return None
    for field, kind in list_unreadable_types(schema):
        refuse("schema", f"field {field} is of type {kind}", f"declare it as {READABLE_TYPES}")
    for each in schema.fields if contract.csv else ():
        if isinstance(each.dataType, StructType | ArrayType | MapType):
            what = f"field {each.name} is of type {each.dataType.simpleString()}, and CSV has no such fields"
            refuse("schema", what, "declare it as STRING, and read it by SQL")
    return schema


def _parse_file(contract: Contract, refuse: Refuse) -> StructType | None:
    try:
        return _find_rows(contract.format, contract.reader_schema, contract.message)
    except _UNFIT as error:
        refuse("schema_file", str(error), _FILE_REMEDY)
        return None


def find_key_type(contract: Contract) -> DataType:
    """Return the type of SQL's `key`. Raises AvroSchemaError or ProtobufSchemaError."""
    if contract.key_format not in SCHEMA_FORMATS:
        return StringType()
    return _find_rows(contract.key_format, contract.key_schema, contract.key_message)


def _find_rows(form: str, schema: str, message: str) -> StructType:
    if form == "avro":
        kind = arrow_types.find_row_type(parse_schema(schema))
    else:
        kind = fields.find_row_type(find_message(schema, message))
    return from_arrow_schema(pa.schema(list(kind)))
