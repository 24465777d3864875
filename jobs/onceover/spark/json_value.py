"""A JSON value by its declared fields: exactly one object, or what is wrong with it.

`from_json` alone reads the first object and ignores the rest, and makes null of an empty text, of `null` and of broken
JSON alike. So the text is wrapped in a document, `{"NAME":[TEXT,{"END":1}]}`: unless an array of two objects is read
back, of which the second is the document's own, the text was not one object. No text can close the array and open it
again, for each process makes up its own names.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from onceover.spark.json_fields import any_of, describe_unfit, find_doubt, list_lost, read_exactly, to_plain, to_tokens

# Without digits, so that no pattern finds a number in them.
_SECRET: Final = secrets.token_hex(16).translate(str.maketrans("0123456789", "ghijklmnop"))
_OBJECTS, _END, _BROKEN = f"objects_{_SECRET}", f"end_{_SECRET}", "broken"
_OPTIONS: Final = {  # explicit, so that another version of Spark reads old raw in the same way
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _BROKEN,
    "allowSingleQuotes": "false",
    "allowUnquotedFieldNames": "false",
    "allowNonNumericNumbers": "false",
    "allowNumericLeadingZeros": "false",
    "allowUnquotedControlChars": "false",
    "allowBackslashEscapingAnyCharacter": "false",
    "allowComments": "false",
}


def wrap(text: Column) -> Column:
    """Return the text of the document around a value's text."""
    return F.concat(F.lit(f'{{"{_OBJECTS}":['), text, F.lit(f',{{"{_END}":1}}]}}'))


def parse_document(text: Column, schema: StructType) -> Column:
    """Return the document from its text; null if that is null."""
    return _parse(text, _of_struct(to_plain(schema)))


def read_value(text: Column, document: Column, schema: StructType) -> Column:
    """Return the schema's struct from a document and its text: each field of its type, null where the text has no value
    of that type. Without meaning where the document has a fault."""
    raw = _get_object(document, 0)
    exact = read_exactly(schema, raw, text)
    doubtful = find_doubt(schema, raw, text)
    if doubtful is None:
        return exact
    tokens = _get_object(_parse(text, _of_struct(to_tokens(schema))), 0)
    by_tokens = _use_once(tokens, lambda tokens: read_exactly(schema, raw, text, tokens))
    return F.when(doubtful, by_tokens).otherwise(exact)


def read_json(text: Column, schema: StructType) -> Column:
    """Return the schema's struct from a JSON text, null if that is null. Evaluating it throws where the text is not one
    JSON object, or a field not exactly a value of its type."""

    def throw_at_fault(wrapped: Column, document: Column, value: Column) -> Column:
        faults = [find_document_fault(wrapped, document), *list_field_faults(wrapped, document, value, schema)]
        fault = F.coalesce(*(F.when(is_faulty, why) for is_faulty, why in faults))
        thrown = F.raise_error(F.concat(F.lit("from_json: "), fault)).cast(schema)
        return F.when(any_of([is_faulty for is_faulty, _ in faults]), thrown).otherwise(value)

    def read(wrapped: Column, document: Column) -> Column:
        return _use_once(read_value(wrapped, document, schema), partial(throw_at_fault, wrapped, document))

    def parse(wrapped: Column) -> Column:
        return _use_once(parse_document(wrapped, schema), partial(read, wrapped))

    return F.when(text.isNotNull(), _use_once(wrap(F.when(F.is_valid_utf8(text), text)), parse))


def find_document_fault(text: Column, document: Column) -> tuple[Column, Column]:
    """Return whether the value is not one JSON object, from its document and text, and why."""
    objects = document[_OBJECTS]
    is_object = (
        (F.size(objects) == 2) & _get_object(document, 0).isNotNull() & (_get_object(document, 1)[_END] == F.lit(1))
    )
    why = F.when(text.isNull(), "not UTF-8").otherwise("not one JSON object")
    return ~F.coalesce(is_object, F.lit(False)), why


def list_field_faults(text: Column, document: Column, value: Column, schema: StructType) -> list[tuple[Column, Column]]:
    """Return conditions with their descriptions, of an object and what `read_value` made of it: the first that holds
    names a field whose JSON is not exactly a value of its type."""
    lost = [(is_lost, F.lit(what)) for what, is_lost in list_lost(schema, _get_object(document, 0), value)]
    return [(document[_BROKEN].isNotNull(), _name_broken(text, value, schema)), *lost]


def _name_broken(text: Column, value: Column, schema: StructType) -> Column:
    """Return which field is of another type, as far as the object's own fields tell."""
    names = StructType([StructField(field.name, StringType()) for field in schema.fields])
    written = _get_object(_parse(text, names), 0)

    def name(texts: Column) -> Column:
        unfit = [
            F.when(
                value[field.name].isNull() & texts[field.name].isNotNull(), describe_unfit(field.name, field.dataType)
            )
            for field in schema.fields
        ]
        return F.coalesce(*unfit, F.lit("a field is not of its type"))

    return _use_once(written, name)


def _use_once(column: Column, use: Callable[[Column], Column]) -> Column:
    """Return what `use` makes of the column, which is evaluated once, however often it is used."""
    return F.get(F.transform(F.array(column), use), 0)


def _get_object(document: Column, number: int) -> Column:
    return F.get(document[_OBJECTS], number)


def _of_struct(kind: DataType) -> StructType:
    return StructType(kind.fields) if isinstance(kind, StructType) else StructType()


def _parse(text: Column, schema: StructType) -> Column:
    objects = ArrayType(StructType([*schema.fields, StructField(_END, IntegerType())]))
    return F.from_json(text, StructType([StructField(_OBJECTS, objects), StructField(_BROKEN, StringType())]), _OPTIONS)
