"""Lines as rows that Spark can shuffle: what is held of each, the records that are evaluated by VALUE, and the bytes.

A window that one task cannot fold alone is read in splits; a row for each line goes to the part of its ID, where the
lines of all splits are folded together. Each piece also has a row without an offset, with its number of corrupt lines.

Lines of another contract than their ID's are known by themselves, and so are those without columns. Those that differ
from others of their ID in columns alone are not: a fold that names such lines is repeated with the records of all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from onceover.lines import records
from onceover.lines.accounts import Accounts
from onceover.lines.fold import choose_part, fold
from onceover.lines.folded_window import FoldedWindow, Shuffled
from onceover.lines.frame import get_data
from onceover.lines.judge import NOT_EVALUATED
from onceover.lines.read import Lines
from onceover.lines.typed_lines import TypedLines
from onceover.lines.window_lines import WindowLines

VALUE_FIELDS: Final = ("kafka_timestamp", "key", "value")
"""What a contract evaluates of a record."""

SCHEMA: Final = pa.schema(
    [
        ("part", pa.int32()),
        ("source", pa.int64()),
        ("offset", pa.int64()),
        ("line_ms", pa.int64()),
        ("content", pa.binary()),
        ("hash", pa.int64()),
        ("contract", pa.binary()),
        ("has_columns", pa.bool_()),
        ("compacted", pa.bool_()),
        ("position", pa.int64()),
        ("corrupt", pa.int64()),
        ("line", pa.binary()),  # its bytes, if they are wanted
        ("place", pa.int32()),  # of the ID's contract among the accounts' ones, if VALUE is evaluated
        *(records.SCHEMA.field(name) for name in VALUE_FIELDS),
    ]
)
EVALUATED: Final = "evaluated"


def make_rows(
    lines: Lines, typed: TypedLines, accounts: Accounts, parts: int, *, every: bool, whole: bool = False
) -> pa.Table:
    """Return rows of SCHEMA, and the typed columns, for the lines that `typed` holds. VALUE is evaluated of those that
    have another contract than their ID, or no columns, and with `every` of all. Their records come with them, and with
    `whole` the bytes of all lines."""
    held, rows = typed.lines, len(typed)
    place = _find_contracts(held, accounts)
    numbers = {name: number for number, name in enumerate(accounts.contracts)}
    own = np.array([numbers.get(name, -1) for name in held.contracts], np.int64)[held.contract] == place
    needed = np.ones(rows, bool) if every else ~(own & held.has_columns)
    intact = np.flatnonzero(lines.intact)
    found = records.read_records(lines, intact[needed]).select(VALUE_FIELDS)
    of_records = found.take(pa.array(np.cumsum(needed) - 1, mask=~needed))
    names = pa.array(held.contracts, pa.binary())
    own_columns = [
        pa.array(choose_part(held, parts).astype(np.int32)),
        pa.array(held.source),
        pa.array(held.offset),
        pa.array(held.event_ms),
        _as_binary(held.content),
        pa.array(held.hash.view(np.int64)),
        names.take(pa.array(held.contract)),
        pa.array(held.has_columns),
        pa.array(held.compacted),
        pa.array(held.position),
        pa.nulls(rows, pa.int64()),
        _slice_lines(lines, intact) if whole else pa.nulls(rows, pa.binary()),
        pa.array(place.astype(np.int32), mask=~needed),
        *of_records.columns,
        *typed.columns.columns,
    ]
    schema = pa.schema([*SCHEMA, *typed.columns.schema])
    table = pa.table(own_columns, schema=schema)
    return pa.concat_tables([table, pa.Table.from_pylist([{"part": 0, "corrupt": held.corrupt}], schema)])


def fold_rows(rows: pa.Table, accounts: Accounts) -> FoldedWindow | Shuffled:
    """Fold the rows of one part, of which EVALUATED is a column: the event time that VALUE gives, as `fold` takes it,
    null where it was not asked; where it was, VALUE gave the typed columns, too. The result's rows are those of the
    records that count, with all their columns."""
    lines, rows = _read_rows(rows)
    evaluated = rows.column(EVALUATED).fill_null(NOT_EVALUATED).to_numpy()
    folded = fold(lines, accounts, evaluated)
    if len(folded.evaluate) or (evaluated[folded.counting[folded.from_value]] == NOT_EVALUATED).any():
        return Shuffled.NEEDS_VALUE
    by_value = int((evaluated[folded.counting] != NOT_EVALUATED).sum())
    return FoldedWindow(replace(folded.summary, by_value=by_value), rows.take(folded.counting))


def _read_rows(rows: pa.Table) -> tuple[WindowLines, pa.Table]:
    """Return the lines of these rows, and the rows of lines alone, in the same order."""
    corrupt = int(np.sum(rows.column("corrupt").fill_null(0).to_numpy()))
    rows = rows.filter(rows.column("offset").is_valid())
    contract = rows.column("contract").combine_chunks().dictionary_encode()
    lines = WindowLines(
        source=rows.column("source").to_numpy(),
        offset=rows.column("offset").to_numpy(),
        event_ms=rows.column("line_ms").to_numpy(),
        content=np.frombuffer(get_data(rows.column("content").combine_chunks()), np.uint32).reshape(-1, 4),
        hash=rows.column("hash").to_numpy().view(np.uint64),
        contract=contract.indices.to_numpy(),
        has_columns=rows.column("has_columns").to_numpy(),
        compacted=rows.column("compacted").to_numpy(),
        position=rows.column("position").to_numpy(),
        contracts=tuple(contract.dictionary.to_pylist()),
        corrupt=corrupt,
    )
    return lines, rows


def _find_contracts(held: WindowLines, accounts: Accounts) -> np.ndarray:
    """Return the place of the contract that the ID of each line has."""
    place = np.empty(len(held), np.int32)
    order = np.lexsort((held.offset, held.source))
    place[order] = accounts.contract.find(held.source[order], held.offset[order])
    return np.where(place < 0, accounts.newest, place)


def _slice_lines(lines: Lines, rows: np.ndarray) -> pa.Array:
    bounds = zip(lines.start[rows].tolist(), lines.end[rows].tolist(), strict=True)
    return pa.array([bytes(lines.data[start:end]) for start, end in bounds], pa.binary())


def _as_binary(content: np.ndarray) -> pa.Array:
    rows = len(content)
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(16)
    data = np.ascontiguousarray(content, np.uint32)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
