"""A JSON value by its declared fields: exactly one object, or what is wrong with it; parsed once.

`from_json` alone reads the first object and ignores the rest, and makes null of an empty text, of `null` and of broken
JSON alike. So the text is wrapped in a document, `{"v":[TEXT],"end":1}`: unless an array of one object and the end are
read back, the text was not one object. (A text that closes the array itself is read by its last object, which its
sender might as well have sent.)
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)

_OPTIONS = {  # explicit, so that another version of Spark reads old raw in the same way
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "broken",
    "allowSingleQuotes": "false",
    "allowUnquotedFieldNames": "false",
    "allowNonNumericNumbers": "false",
    "allowNumericLeadingZeros": "false",
    "allowUnquotedControlChars": "false",
    "allowComments": "false",
}
# Spark writes out all digits of a number it reads as a decimal: 1e9999999 keeps a core busy for 20 s, 1e99999999 for
# hours, and 400,000 plain digits for 6 s. It takes a string for a number too, without its commas.
_HUGE = r"[eE][+-]?\p{Nd}{3}|\p{Nd}[\p{Nd}.]{100}"
# Looked for only under schemas that have decimals, and in full only in the rare value that has such characters: with
# commas, or in a string of nothing but digits, signs and escapes, which may be digits.
_SUSPECT = (
    r"[eE][,+-]*+(?:\p{Nd},*+){3}|\p{Nd}[\p{Nd}.,]{100}"
    # Up to its first \u a number has neither that letter nor a backslash. Without steps back: a text of nothing but
    # escapes, of a megabyte, would keep a core busy for hours.
    r'|"[\p{Nd}+\-.,a-fA-F]*+\\u[\p{Nd}+\-.,a-fA-Fu\\]*+"'
)


def wrap(text: Column) -> Column:
    """Return the text of the document around a value's text."""
    return F.concat(F.lit('{"v":['), text, F.lit('],"end":1}'))


def parse_document(text: Column, schema: StructType) -> Column:
    """Return the document for `get_value` and `list_faults`, from its text; null if that is null or has too large a
    number: under a schema with decimals, one of an exponent of three digits or of more than a hundred digits."""
    parsed = _parse(text, schema)
    decimals = _prune_schema(schema)
    if decimals is None:
        return parsed
    # Without escaped backslashes and then escaped quotes, a string is the text between two quotes.
    plain = F.replace(F.replace(text, F.lit("\\\\"), F.lit("")), F.lit('\\"'), F.lit(""))
    bare = F.regexp_replace(plain, '"[^"]*+"', "")
    # Spark converts each of the fields of one name, and this shows the last: an object that repeats one is refused.
    quoted = F.replace(F.to_json(_parse(text, decimals)), F.lit(","), F.lit(""))
    is_huge = bare.rlike(_HUGE) | quoted.rlike(_HUGE) | F.try_parse_json(text).isNull()
    return F.when(~(text.rlike(_SUSPECT) & is_huge), parsed)


def blank_huge(text: Column) -> Column:
    """Return the string to cast to a decimal; null if that is too large a number, as in `parse_document`."""
    return F.when(~text.rlike(_HUGE), text)


def get_value(parsed: str) -> Column:
    """Return the schema's struct, from the document in the column of that name; without meaning where a fault holds."""
    return F.get(F.col(f"{parsed}.v"), 0)


def list_faults(parsed: str) -> list[tuple[Column, str]]:
    """Return conditions with their descriptions; the first that holds is the value's fault."""
    objects = F.col(f"{parsed}.v")
    no_object = objects.isNull() | F.col(f"{parsed}.end").isNull() | (F.size(objects) != 1) | F.get(objects, 0).isNull()
    return [
        (F.col(parsed).isNull(), "not UTF-8, or a number too large"),
        (no_object, "not one JSON object"),
        (F.col(f"{parsed}.broken").isNotNull(), "a field is not of its type"),
    ]


def _parse(text: Column, schema: StructType) -> Column:
    fields = [
        StructField("v", ArrayType(schema)),
        StructField("end", IntegerType()),
        StructField("broken", StringType()),
    ]
    return F.from_json(text, StructType(fields), _OPTIONS)


def _prune_schema(schema: StructType) -> StructType | None:
    """Return the schema's decimals alone, as strings; None if there are none."""
    pruned = _prune(schema)
    return pruned if isinstance(pruned, StructType) else None


def _prune(kind: DataType) -> DataType | None:
    if isinstance(kind, DecimalType):
        return StringType()
    if isinstance(kind, ArrayType):
        element = _prune(kind.elementType)
        return ArrayType(element) if element else None
    if isinstance(kind, MapType):
        value = _prune(kind.valueType)
        return MapType(StringType(), value) if value else None
    if isinstance(kind, StructType):
        fields = [(field.name, _prune(field.dataType)) for field in kind.fields]
        kept = [StructField(name, pruned) for name, pruned in fields if pruned is not None]
        return StructType(kept) if kept else None
    return None
