"""Lines held without their bytes, each with its typed columns: what a fold needs, and what it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from onceover.lines.columns import read_columns
from onceover.lines.read import Lines
from onceover.lines.window_lines import WindowLines, concatenate, hold_lines


@dataclass(frozen=True, slots=True)
class ColumnFormats:
    """The columns of a pipeline's lines by contract, in the order in which its lines hold them, and the types of all
    columns. A timestamp's type has a zone here, its text is UTC."""

    schema: pa.Schema
    names: Mapping[bytes, tuple[str, ...]]

    def find_types(self, contract: bytes) -> dict[str, pa.DataType] | None:
        """Return the types to read a line's text by; None for an unknown contract."""
        names = self.names.get(contract)
        return None if names is None else {name: _drop_zone(self.schema.field(name).type) for name in names}


@dataclass(frozen=True, slots=True)
class TypedLines:
    """Lines and, in as many rows, all columns; null where VALUE alone gives them, or an earlier contract had none."""

    lines: WindowLines
    columns: pa.Table

    def __len__(self) -> int:
        return len(self.lines)

    def take_columns(self, rows: np.ndarray) -> pa.Table:
        """Return the columns of these rows, in their order; without a copy if they are all."""
        is_all = len(rows) == len(self) and bool((rows == np.arange(len(self))).all())
        return self.columns if is_all else self.columns.take(rows)


def hold_typed(lines: Lines, formats: ColumnFormats, *, compacted: bool = False) -> TypedLines:
    """Return what `hold_lines` does, and the columns. Lines whose columns cannot be read as their contract says have
    `has_columns` False."""
    held = hold_lines(lines, compacted=compacted)
    intact = np.flatnonzero(lines.intact)
    typed = [formats.find_types(contract) for contract in lines.contracts]
    width = np.array([len(types or ()) for types in typed], np.int64)
    readable = held.has_columns & (held.event_ms >= 0) & (lines.columns[intact] == width[held.contract])
    places: list[np.ndarray] = []
    tables: list[pa.Table] = []
    for number, types in enumerate(typed):
        of_contract = np.flatnonzero(readable & (held.contract == number))
        for at, table in _read_some(lines, intact, of_contract, types or {}):
            places.append(at)
            tables.append(_fit(table, formats.schema))
    has_columns, columns = _assemble(len(held), places, tables, formats.schema)
    return TypedLines(replace(held, has_columns=has_columns), columns)


def join_typed(parts: Sequence[TypedLines]) -> TypedLines:
    """Return the lines of all parts, at least one, in their order."""
    return TypedLines(concatenate([part.lines for part in parts]), pa.concat_tables([part.columns for part in parts]))


def _read_some(
    lines: Lines, intact: np.ndarray, at: np.ndarray, types: Mapping[str, pa.DataType]
) -> Iterator[tuple[np.ndarray, pa.Table]]:
    """Yield the places whose columns can be read, with these."""
    if not len(at) or not types:
        return
    table = read_columns(lines, intact[at], types)
    if table is not None:
        yield at, table
    elif len(at) > 1:
        for half in np.array_split(at, 2):
            yield from _read_some(lines, intact, half, types)


def _fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
    rows = table.num_rows
    given = set(table.column_names)
    columns = [
        table.column(field.name).cast(field.type) if field.name in given else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _assemble(
    rows: int, places: Sequence[np.ndarray], tables: Sequence[pa.Table], schema: pa.Schema
) -> tuple[np.ndarray, pa.Table]:
    """Return which of so many rows are in a table, and one table with all rows, in order."""
    if len(tables) == 1 and len(places[0]) == rows:
        return np.ones(rows, bool), tables[0]
    source = np.full(rows, -1)
    filled = 0
    for at in places:
        source[at] = np.arange(filled, filled + len(at))
        filled += len(at)
    has_columns = source >= 0
    whole = pa.concat_tables(tables) if tables else schema.empty_table()
    return has_columns, whole.take(pa.array(source, mask=~has_columns))


def _drop_zone(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
