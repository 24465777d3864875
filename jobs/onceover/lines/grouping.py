"""Typed columns grouped by keys into measures, to the values that Spark gives: its types, its null, its overflow.

Contracts have no floating-point columns. All others group and sum alike in Arrow: strings by their bytes, decimals by
their value, a null key as a key like any other, a measure of nulls alone as null, integers modulo 2^64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from onceover.lines.sketches import unite
from onceover.model.measures import SKETCH_BYTES


@dataclass(frozen=True, slots=True)
class Grouping:
    """The `functions` (sum, min, max, bit_or) of measures, by column; other columns of the `schema` are keys. It is
    the schema of the result, with sums that hold 10^10 values. Results of parts are joined by the same functions."""

    functions: Mapping[str, str]
    schema: pa.Schema

    def count_text_bytes(self, groups: pa.Table) -> int:
        """Return about how long the text of these groups is: bits are written in hexadecimal digits."""
        bits = [groups.column(name) for name, function in self.functions.items() if function == "bit_or"]
        return int(groups.nbytes + sum(column.nbytes for column in bits))

    def group(self, rows: pa.Table) -> pa.Table:
        """Return a row for each combination of keys, at most 10^10 rows together."""
        if not len(rows):
            return self.schema.empty_table()
        keys = [name for name in self.schema.names if name not in self.functions]
        functions = {name: "list" if function == "bit_or" else function for name, function in self.functions.items()}
        if not keys:  # Arrow makes lists of groups only
            keys, rows = ["all"], rows.append_column("all", pa.repeat(True, len(rows)))
        for name, function in functions.items():
            if function == "list" and pa.types.is_binary(rows.schema.field(name).type):  # of that, Arrow lists 2 GiB
                sketches = rows.column(name).cast(pa.binary(SKETCH_BYTES))
                rows = rows.set_column(rows.column_names.index(name), name, sketches)
        found = rows.group_by(keys, use_threads=False).aggregate(list(functions.items()))
        named = {f"{name}_{function}": name for name, function in functions.items()}
        found = found.rename_columns([named.get(name, name) for name in found.column_names])
        for name, function in functions.items():
            if function == "list":
                found = found.set_column(found.column_names.index(name), name, unite(found.column(name)))
        return found.select(self.schema.names).cast(self.schema)
