"""JSON objects that Arrow reads in the place of Spark, for a third of the time: those that both read alike.

The task that reads Kafka takes the declared fields from plain values; Spark reads all others. A plain value is UTF-8,
begins and ends with a brace, and has no backslash, no NUL character and no word that Arrow takes for a number. Arrow
refuses whatever else Spark does, and so short a value meets neither reader's limit of digits and nested arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StringType, StructType

from onceover.lines.frame import get_data
from onceover.spark.json_fields import NATIVE, to_plain

PLAIN: Final = "plain"
"""The column of the fields, null of values that Spark reads."""
_LONGEST: Final = 1_000
"""Bytes: Spark's reader takes a number of as many digits, and nearly as many nested arrays."""
_ODD: Final = {b"\\": r"\\", b"\0": r"\x00", b"NaN": r"[:\[,\s]-?NaN", b"Inf": r"[:\[,\s]-?Inf"}
"""What no plain value has, and as which pattern. Arrow ends at a NUL character, and takes what is no number as one."""
_TOGETHER: Final = (5_000, 500)
"""Values that are read together, and fewer where one of those is not plain: Spark reads all of these."""


def make_plain_type(schema: StructType) -> pa.StructType | None:
    """Return the type of the fields of plain values, None if Arrow does not read one of their types as Spark does."""
    return to_arrow_type(to_plain(schema)) if schema.fields and _is_plain(schema) else None


def _is_plain(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_is_plain(field.dataType) for field in kind.fields)
    return isinstance(kind, NATIVE) or kind == StringType()


def read_plain(values: pa.Array, kind: pa.StructType) -> pa.Array:
    """Return the fields of each of these values, as Spark's `from_json` reads them, null where it must read them."""
    return pa.concat_arrays([pa.nulls(0, kind), *_read_parts(values, kind, *_TOGETHER)])


def _read_parts(values: pa.Array, kind: pa.StructType, most: int, *fewer: int) -> Iterator[pa.Array]:
    for start in range(0, len(values), most):
        part = values.slice(start, most)
        try:
            yield _read_together(part, kind)
        except pa.ArrowInvalid:
            if fewer:
                yield from _read_parts(part, kind, *fewer)
            else:
                yield pa.nulls(len(part), kind)


def _read_together(values: pa.Array, kind: pa.StructType) -> pa.Array:
    """Return the fields of these values, null of those that are not plain. Raises ArrowInvalid if it reads none."""
    text = values.cast(pa.string())  # all of it UTF-8, or none is plain
    is_plain = pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))
    is_plain = pc.and_(is_plain, pc.less_equal(pc.binary_length(values), _LONGEST)).fill_null(False)
    data = bytes(get_data(values))
    for pattern in (p for odd, p in _ODD.items() if odd[:1] in data and odd in data):  # one byte is found at once
        is_plain = pc.and_not(is_plain, pc.match_substring_regex(text, pattern).fill_null(False))
    chosen = is_plain.to_numpy(zero_copy_only=False)
    if chosen.all():
        return _parse(text, kind)
    if not chosen.any():
        return pa.nulls(len(values), kind)
    return _parse(text.filter(is_plain), kind).take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))


def _parse(text: pa.Array, kind: pa.StructType) -> pa.Array:
    """Return the fields of these objects. Raises ArrowInvalid if any is none.

    Each begins and ends with a brace, so that none begins within another: as many objects as texts are one of each.
    """
    document = get_data(pc.binary_join_element_wise(text, "", "\n"))
    table = json.read_json(
        pa.BufferReader(document),
        json.ReadOptions(use_threads=False, block_size=len(document) + 1),
        json.ParseOptions(pa.schema(list(kind)), unexpected_field_behavior="ignore"),
    )
    if len(table) != len(text):
        raise pa.ArrowInvalid("not one object a value")
    return table.to_struct_array().combine_chunks()
