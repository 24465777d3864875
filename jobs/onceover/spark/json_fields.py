r"""Which JSON is exactly a value of a declared type; all other is null here, and its record goes to quarantine.

`from_json` rounds decimals, reads "12,50" as 1250, "12:30" as a time of today, 1e400 as infinity, and writes 1.50 into
a string as 1.5. So it reads decimals, dates and timestamps as text, which is held to a pattern before it is cast. For
that text it reads a number through a double, which is exact up to 15 digits, and it gives the same text for a number,
an object and a string that looks like one. Where that may matter, `find_doubt` says so, and the value is read once more
with each such field as a VARIANT, which knows what the text held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

READABLE_TYPES: Final = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ, or a "
    "STRUCT, an ARRAY or a MAP<STRING, ...> of these"
)
NATIVE: Final = (BooleanType, ByteType, ShortType, IntegerType, LongType)
"""`from_json` takes no other JSON for these than their values."""
_WRITTEN: Final = (DecimalType, DateType, TimestampType, TimestampNTZType)
"""Read as text, and cast from it."""
# A `$` in these patterns would take a newline behind the value.
_DATE: Final = r"(?!0000)\d{4}-\d{2}-\d{2}"
_TIME: Final = r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6}0*)?)?"
_ZONE: Final = r"(?:Z|[+-]\d{2}:?\d{2})?"
_PATTERNS: Final[Mapping[type[DataType], str]] = {
    DateType: rf"^{_DATE}\z",
    TimestampType: rf"^{_DATE}[T ]{_TIME}{_ZONE}\z",
    TimestampNTZType: rf"^{_DATE}[T ]{_TIME}\z",
}
_EXPONENT: Final = r"^-?(?=[\d.]{1,16}[eE])\d+(?:\.\d+)?[eE][+-]?\d{1,2}\z"
"""A number of at most 15 digits and an exponent: two of them that differ are different doubles."""
_INTEGER_OR_WORD: Final = r"^(?:-?\d+|true|false)\z"
NO_STRING: Final = r'^(?:-?\d+\.\d|"-?Infinity"|[\[{])'
"""The text that `from_json` makes of a number with a fraction, or of an array or an object, begins so."""
_FIRST: Final = '-0123456789"[{'
LONG_NUMBER: Final = r"[\d.]{17}|\d{16}[eE]|\d[eE]-\d{3}"
"""A number of more than 15 digits, or of an exponent below those of doubles."""
_ROUNDED_NUMBER: Final = r"[:\[,\s]-?(?:[\d.]{17,}+[eE]|\d{16}[eE]|\d[\d.]*+[eE]-\d{3}|[\d.]{40})"
"""Such a number where JSON may have one, and not within a word, that a VARIANT has as a double: with an exponent, or of
more digits than decimals have."""
_TINY_NUMBER: Final = r"\d[eE]-\d{3,}+[\s,}\]]|\.0{300}"
"""A number that may be too small for a double, and not zero."""
_HALF_A_PAIR: Final = r"\\u[dD][89a-fA-F]"
_LARGEST_FLOAT: Final = 3.4028234663852886e38


def list_unreadable_types(kind: DataType, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the type of each field that no JSON is exactly a value of."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from list_unreadable_types(field.dataType, f"{path}.{field.name}" if path else field.name)
    elif isinstance(kind, ArrayType):
        yield from list_unreadable_types(kind.elementType, path)
    elif isinstance(kind, MapType) and kind.keyType == StringType():
        yield from list_unreadable_types(kind.valueType, path)
    elif not isinstance(kind, (*NATIVE, *_WRITTEN, FloatType, DoubleType)) and kind != StringType():
        yield path, kind.simpleString().upper()


def to_plain(kind: DataType) -> DataType:
    """Return the type that `from_json` reads in the place of this one."""
    if isinstance(kind, _WRITTEN):
        return StringType()
    return DoubleType() if isinstance(kind, FloatType) else _map_leaves(kind, to_plain)


def to_tokens(kind: DataType) -> DataType:
    """Return the type that shows what the text held, in the place of this one."""
    if isinstance(kind, StringType | DecimalType):
        return VariantType()
    return _map_leaves(kind, to_tokens) if isinstance(kind, StructType | ArrayType | MapType) else to_plain(kind)


def find_doubt(kind: DataType, raw: Column, text: Column) -> Column | None:
    """Return whether `raw`, of the plain type, may hold another value than the text, so that its tokens decide; None if
    it never does."""
    doubts = []
    if _contains(kind, StringType):
        doubts.append(_looks_like_no_string(kind, raw))
    if _contains(kind, DecimalType):
        doubts.append(text.rlike(LONG_NUMBER))
    if _contains(kind, StringType, MapType):
        doubts.append(_has_half_a_pair(text))
    return any_of(doubts) if doubts else None


def any_of(flags: Sequence[Column]) -> Column:
    """Return whether any of the flags, at least one, is true. Halved again and again, since Spark goes down each level
    of an expression by a call: a sum of hundreds fills the stack."""
    middle = len(flags) // 2
    return any_of(flags[:middle]) | any_of(flags[middle:]) if middle else flags[0]


def read_exactly(kind: DataType, raw: Column, text: Column, tokens: Column | None = None) -> Column:
    """Return the value of that type, null where the text has none: from `raw`, of the plain type, and, where that is in
    doubt, from the same value's `tokens`."""
    if isinstance(kind, StructType):
        fields = [
            read_exactly(f.dataType, raw[f.name], text, None if tokens is None else tokens[f.name]).alias(f.name)
            for f in kind.fields
        ]
        return F.when(raw.isNotNull(), F.struct(*fields))
    if isinstance(kind, ArrayType):
        return _read_elements(kind.elementType, raw, text, tokens)
    if isinstance(kind, MapType):
        keys = F.map_keys(raw)
        values = _read_elements(
            kind.valueType, F.map_values(raw), text, None if tokens is None else F.map_values(tokens)
        )
        # `from_json` keeps both values of a key that is there twice, and makes a question mark of half a pair.
        unfit = F.size(F.array_distinct(keys)) != F.size(keys)
        if tokens is not None:
            unfit = unfit | (_has_half_a_pair(text) & F.exists(keys, lambda key: F.contains(key, F.lit("?"))))
        return F.when(~unfit, F.map_from_arrays(keys, values))
    return _read_leaf(kind, raw, text, tokens)


def list_lost(kind: DataType, raw: Column, read: Column, path: str = "") -> Iterator[tuple[str, Column]]:
    """Yield the path of each field, with its type in words, and whether `raw` has a value there of which nothing was
    read. An array or a map is one field."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            name = f"{path}.{field.name}" if path else field.name
            yield from list_lost(field.dataType, raw[field.name], read[field.name], name)
    elif not isinstance(kind, NATIVE):
        yield describe_unfit(path, kind), _is_lost(kind, raw, read)


def describe_unfit(path: str, kind: DataType) -> str:
    """Return what is wrong with a field whose JSON is no value of its type."""
    return f"field {path} is no {kind.simpleString().upper()}"


def _read_leaf(kind: DataType, raw: Column, text: Column, token: Column | None) -> Column:
    if isinstance(kind, DecimalType):
        return _read_decimal(kind, raw, text, token)
    if isinstance(kind, _WRITTEN):
        return F.when(raw.rlike(_PATTERNS[type(kind)]), raw.try_cast(kind))
    if isinstance(kind, StringType) and token is not None:
        return F.when((F.schema_of_variant(token) == "STRING") | raw.rlike(_INTEGER_OR_WORD), raw)
    if isinstance(kind, DoubleType):
        return F.when((F.abs(raw) < float("inf")) & ((raw != 0) | ~text.rlike(_TINY_NUMBER)), raw)
    if isinstance(kind, FloatType):
        narrow = raw.cast(kind)
        is_kept = (
            (F.abs(raw) <= _LARGEST_FLOAT) & ((narrow != 0) | (raw == 0)) & ~((raw == 0) & text.rlike(_TINY_NUMBER))
        )
        return F.when(is_kept, narrow)
    return raw


def _read_decimal(kind: DecimalType, raw: Column, text: Column, token: Column | None) -> Column:
    if token is None:
        return _cast_exactly(kind, raw)
    shape = F.schema_of_variant(token)
    return (
        F.when(shape == "STRING", _cast_exactly(kind, raw))
        .when((shape == "DOUBLE") & text.rlike(_ROUNDED_NUMBER), F.lit(None).cast(kind))
        .when(shape == "DOUBLE", _cast_exactly(kind, raw))
        .otherwise(_cast_exactly(kind, token.cast("string")))
    )


def _cast_exactly(kind: DecimalType, written: Column) -> Column:
    """Return the decimal, null unless the text is a plain number that needs no rounding."""
    whole, cast = kind.precision - kind.scale, written.try_cast(kind)
    pattern = rf"^-?0*\d{{{min(whole, 1)},{whole}}}(?:\.(?=\d)\d{{0,{kind.scale}}}0*)?\z"
    has_exponent = written.rlike(_EXPONENT) & (cast.cast("double") == written.try_cast("double"))
    return F.when(written.rlike(pattern) | has_exponent, cast)


def _read_elements(kind: DataType, raw: Column, text: Column, tokens: Column | None) -> Column:
    if tokens is not None and _contains(kind, StringType, DecimalType):
        return F.zip_with(raw, tokens, lambda each, token: read_exactly(kind, each, text, token))
    if to_plain(kind) == kind and not _contains(kind, DoubleType, MapType):
        return raw
    return F.transform(raw, lambda each: read_exactly(kind, each, text))


def _looks_like_no_string(kind: DataType, raw: Column) -> Column:
    """Return whether some string has the text that a number with a fraction, an object or an array would have, not true
    if there is none; of a type that contains strings."""
    if isinstance(kind, StructType):
        with_strings = [field for field in kind.fields if _contains(field.dataType, StringType)]
        return any_of([_looks_like_no_string(field.dataType, raw[field.name]) for field in with_strings])
    if isinstance(kind, ArrayType | MapType):
        inner = _get_inner(kind)
        return F.exists(_list_elements(kind, raw), lambda each: _looks_like_no_string(inner, each))
    return F.substring(raw, 1, 1).isin(*_FIRST) & raw.rlike(NO_STRING)


def _is_lost(kind: DataType, raw: Column, read: Column) -> Column:
    if isinstance(kind, StructType):
        fields = [_is_lost(f.dataType, raw[f.name], read[f.name]) for f in kind.fields]
        return any_of([raw.isNotNull() & read.isNull(), *fields])
    lost = raw.isNotNull() & read.isNull()
    if isinstance(kind, ArrayType | MapType):
        inner, pair = _get_inner(kind), (_list_elements(kind, raw), _list_elements(kind, read))
        each = F.zip_with(*pair, lambda one, other: _is_lost(inner, one, other))
        lost = lost | F.exists(each, lambda is_lost: is_lost)
    return lost


def _get_inner(kind: ArrayType | MapType) -> DataType:
    return kind.valueType if isinstance(kind, MapType) else kind.elementType


def _list_elements(kind: ArrayType | MapType, column: Column) -> Column:
    return F.map_values(column) if isinstance(kind, MapType) else column


def _contains(kind: DataType, *wanted: type[DataType]) -> bool:
    if isinstance(kind, StructType):
        return any(_contains(field.dataType, *wanted) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _contains(kind.elementType, *wanted)
    if isinstance(kind, MapType):
        return MapType in wanted or _contains(kind.valueType, *wanted)
    return isinstance(kind, wanted)


def _map_leaves(kind: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """Return the type with its leaves changed; a leaf as it is."""
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, change(field.dataType)) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(change(kind.elementType))
    return MapType(StringType(), change(kind.valueType)) if isinstance(kind, MapType) else kind


def _has_half_a_pair(text: Column) -> Column:
    """Return whether half a surrogate pair may be written there: `from_json` makes a question mark of it."""
    return F.contains(text, F.lit("\\u")) & text.rlike(_HALF_A_PAIR)
