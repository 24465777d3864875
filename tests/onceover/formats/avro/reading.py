"""What AvroReader makes of bytes, as Python's values: times as the numbers below them, which have no range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from onceover.formats.avro.values import AvroReader
from onceover.formats.framed import SchemaName


class KnownWriters:
    """Schemas by their IDs."""

    def __init__(self, schemas: Mapping[int, str]) -> None:
        self.schemas = schemas

    def read(self, name: SchemaName) -> str:
        assert isinstance(name, int)
        return self.schemas[name]


def frame(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + data


def read(values: Sequence[bytes | None], reader: str, writer: str | None = None) -> tuple[list[Any], list[str | None]]:
    """Return the rows and the reasons of values that `writer` wrote, or `reader` where there is no other; a reason
    without the ID before it."""
    if writer is None:
        rows, faults = AvroReader(reader).read(pa.array(values, pa.binary()))
        return _check(rows, faults)
    framed = [value if value is None else frame(7, value) for value in values]
    rows, faults = AvroReader(reader, KnownWriters({7: writer})).read(pa.array(framed, pa.binary()))
    found, reasons = _check(rows, faults)
    assert all(reason is None or reason.startswith("schema 7: ") for reason in reasons)
    return found, [reason and reason.removeprefix("schema 7: ") for reason in reasons]


def _check(rows: pa.Array, faults: pa.Array) -> tuple[list[Any], list[str | None]]:
    rows.validate(full=True)
    assert len(rows) == len(faults)
    return list_values(rows), faults.to_pylist()


def list_values(array: pa.Array) -> list[Any]:
    """Return an array's values: a map as a dict, a time as its number."""
    kind = array.type
    if pa.types.is_struct(kind):
        columns = [list_values(column) for column in array.flatten()]
        names = [each.name for each in kind]
        found: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    elif pa.types.is_map(kind) or pa.types.is_list(kind):
        if pa.types.is_map(kind):
            pairs = list(zip(array.keys.to_pylist(), list_values(array.items), strict=True))
        else:
            pairs = list_values(array.values)
        bounds = array.offsets.to_pylist()
        found = [pairs[start:end] for start, end in pairwise(bounds)]
        found = list(map(dict, found)) if pa.types.is_map(kind) else found
    elif pa.types.is_temporal(kind):
        found = array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    else:
        return list(array.to_pylist())
    return [value if is_value else None for value, is_value in zip(found, array.is_valid().to_pylist(), strict=True)]
