"""The fields of lines as Arrow columns, for readers that take every record, and what raw says of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from onceover.lines import records
from onceover.lines.escapes import unescape
from onceover.lines.read import Lines
from onceover.model.digest import HALVES

SCHEMA: Final = pa.schema(
    [
        ("intact", pa.bool_()),
        ("generation", pa.string()),
        ("kafka_partition", pa.int32()),
        ("offset", pa.int64()),
        ("event_ms", pa.int64()),  # null in quarantine
        ("leader_epoch", pa.int32()),  # null where the broker gave none
        *records.SCHEMA,
        ("quarantined_for", pa.string()),  # the reason, null outside of quarantine
        ("contract", pa.string()),
        *((name, pa.int64()) for name in HALVES),
    ]
)


def read_fields(lines: Lines, names: Sequence[str]) -> list[pa.Array]:
    """Return the named columns of SCHEMA, a row for each line; all but `intact` are null where a line is not intact."""
    rows = np.flatnonzero(lines.intact)
    of_record = {}
    if not set(names).isdisjoint(records.SCHEMA.names):
        found = records.read_records(lines, rows)
        of_record = {name: found.column(name).combine_chunks() for name in found.column_names}
    place = None if len(rows) == len(lines) else pa.array(np.cumsum(lines.intact) - 1, mask=~lines.intact)
    columns: list[pa.Array] = []
    for name in names:
        if name == "intact":
            columns.append(pa.array(lines.intact))
            continue
        column = of_record[name] if name in of_record else _read_field(lines, rows, name)
        columns.append(column if place is None else column.take(place))
    return columns


def _read_field(lines: Lines, rows: np.ndarray, name: str) -> pa.Array:
    if name in HALVES:
        return pa.array(lines.parts[rows, HALVES.index(name)].astype(np.int64))
    if name == "generation":
        numbers, place = np.unique(lines.generation[rows], return_inverse=True)
        return pa.array([f"{number:08x}" for number in numbers.tolist()], pa.string()).take(pa.array(place))
    if name == "event_ms":
        times = lines.event_ms[rows]
        return pa.array(times, mask=times < 0)
    if name == "leader_epoch":
        epochs = lines.leader_epoch[rows].astype(np.int32)
        return pa.array(epochs, mask=epochs < 0)
    if name == "contract":
        return pa.array([each.decode() for each in lines.contracts], pa.string()).take(pa.array(lines.contract[rows]))
    if name == "quarantined_for":
        return pa.array([_read_reason(lines, row) for row in rows.tolist()], pa.string())
    values: np.ndarray = getattr(lines, name)[rows]
    return pa.array(values)


def _read_reason(lines: Lines, row: int) -> str | None:
    if lines.event_ms[row] >= 0:
        return None
    text = bytes(lines.data[lines.columns_start[row] : lines.columns_end[row]])
    return unescape(text).decode("utf-8", "replace")
