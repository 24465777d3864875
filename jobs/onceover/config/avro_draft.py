"""Sampled values of Avro as JSON has them, by the newest schema among those that wrote them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from onceover.formats.avro.schema import AvroSchemaError
from onceover.formats.avro.values import AvroReader
from onceover.formats.framed import SchemaName


@dataclass(frozen=True, slots=True)
class AvroSample:
    """The text of the schema, and the objects of the values that it wrote, None of all others. `doubt` says why there
    are no objects."""

    schema: str
    rows: Sequence[Mapping[str, Any] | None]
    doubt: str | None = None


def read_sample(values: Sequence[bytes], find_schema: Callable[[int], str]) -> AvroSample:
    """Read values in Confluent's wire format by the schema with the largest ID. A value in another format has no
    object. Raises as `find_schema`."""
    ids = [int.from_bytes(value[1:5]) if len(value) >= 5 and value[0] == 0 else -1 for value in values]
    newest = max(ids)
    text = find_schema(newest)
    own = [value if schema_id == newest else None for value, schema_id in zip(values, ids, strict=True)]
    try:
        rows = AvroReader(text, _OneWriter(text)).read(pa.array(own, pa.binary()))[0].to_pylist()
    except (AvroSchemaError, OverflowError, ValueError) as error:
        return AvroSample(text, (), f"No field is chosen, for the schema cannot be read as it is: {error}.")
    return AvroSample(text, [None if row is None else _make_plain(row) for row in rows])


@dataclass(frozen=True, slots=True)
class _OneWriter:
    text: str

    def read(self, name: SchemaName) -> str:
        return self.text


def _make_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _make_plain(each) for name, each in value.items()}
    if isinstance(value, list):
        is_map = bool(value) and isinstance(value[0], tuple)
        return {k: _make_plain(v) for k, v in value} if is_map else [_make_plain(each) for each in value]
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    if isinstance(value, datetime | date):
        return value.isoformat()
    return None if isinstance(value, bytes) else value
