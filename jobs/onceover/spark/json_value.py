"""A JSON value by its declared fields: exactly one object, or what is wrong with it; parsed once.

`from_json` alone reads the first object and ignores whatever follows, and makes null of an empty text, of `null` and of
broken JSON alike. So the text is put into a document of ours, `{"v":[TEXT],"end":1}`: an array of one object and then
our own end, or the text was not one object. (Text made on purpose to close that array itself is still read by its last
object; that deceives nobody but its sender, who might as well have sent the object.)
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

_OPTIONS = {  # written down, so that no other version of Spark reads old raw otherwise
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
# hours. Looked for only under schemas that have decimals, and in full only in the rare value that has such characters.
_HUGE = r"[0-9][eE][+-]?[0-9]{6,}"


def document(text: Column, schema: StructType) -> Column:
    """What `value_in` and `faults_in` look into; null if `text` is null, or has a number too large to be read."""
    parsed = _document(text, schema)
    decimals = _decimals_as_text(schema)
    if decimals is None:
        return parsed
    # Escaped backslashes and then escaped quotes go, and so a string is what stands between two quotes.
    plain = F.replace(F.replace(text, F.lit("\\\\"), F.lit("")), F.lit('\\"'), F.lit(""))
    bare = F.regexp_replace(plain, '"[^"]*+"', "")
    quoted = F.to_json(_document(text, decimals))
    return F.when(~(text.rlike(_HUGE) & (bare.rlike(_HUGE) | quoted.rlike(_HUGE))), parsed)


def value_in(parsed: str) -> Column:
    """The schema's struct, out of the column of that name; means nothing where one of `faults_in` holds."""
    return F.get(F.col(f"{parsed}.v"), 0)


def faults_in(parsed: str) -> list[tuple[Column, str]]:
    """What can be wrong with the value, in a few words each; the first that holds is it."""
    objects = F.col(f"{parsed}.v")
    no_object = objects.isNull() | F.col(f"{parsed}.end").isNull() | (F.size(objects) != 1) | F.get(objects, 0).isNull()
    return [
        (F.col(parsed).isNull(), "not UTF-8, or a number too large"),
        (no_object, "not one JSON object"),
        (F.col(f"{parsed}.broken").isNotNull(), "a field is not of its type"),
    ]


def _document(text: Column, schema: StructType) -> Column:
    fields = [
        StructField("v", ArrayType(schema)),
        StructField("end", IntegerType()),
        StructField("broken", StringType()),
    ]
    return F.from_json(F.concat(F.lit('{"v":['), text, F.lit('],"end":1}')), StructType(fields), _OPTIONS)


def _decimals_as_text(schema: StructType) -> StructType | None:
    """The schema's decimals alone, to be read as strings; None if there is none."""
    pruned = _pruned(schema)
    return pruned if isinstance(pruned, StructType) else None


def _pruned(kind: DataType) -> DataType | None:
    if isinstance(kind, DecimalType):
        return StringType()
    if isinstance(kind, ArrayType):
        element = _pruned(kind.elementType)
        return ArrayType(element) if element else None
    if isinstance(kind, MapType):
        value = _pruned(kind.valueType)
        return MapType(StringType(), value) if value else None
    if isinstance(kind, StructType):
        fields = [(field.name, _pruned(field.dataType)) for field in kind.fields]
        kept = [StructField(name, pruned) for name, pruned in fields if pruned is not None]
        return StructType(kept) if kept else None
    return None
