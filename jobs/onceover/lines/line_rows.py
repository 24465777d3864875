"""Lines as rows whose VALUE Spark evaluates: what a fold keeps of each, and the record with the contract of its ID.

Each piece also has a row without an offset, with its number of corrupt lines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from onceover.errors import TerminalError
from onceover.lines import records
from onceover.lines.accounts import Accounts
from onceover.lines.disjoint_units import UnitPiece
from onceover.lines.fold import fold
from onceover.lines.folded_window import FoldedUnit, slice_lines
from onceover.lines.frame import as_binary, get_data
from onceover.lines.judge import NOT_EVALUATED
from onceover.lines.ranges import find_kafka_partitions
from onceover.lines.window_lines import WindowLines, hold_lines

VALUE_FIELDS: Final = tuple(records.SCHEMA.names)
"""What a contract evaluates of a record, beside Kafka partition and offset."""

SCHEMA: Final = pa.schema(
    [
        ("unit", pa.int32()),
        ("source", pa.int64()),
        ("kafka_partition", pa.int32()),
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("line_ms", pa.int64()),
        ("content", pa.binary()),
        ("hash", pa.int64()),
        ("contract", pa.binary()),
        ("has_columns", pa.bool_()),
        ("compacted", pa.bool_()),
        ("corrupt", pa.int64()),
        ("line", pa.binary()),  # its bytes, if they are wanted
        ("place", pa.int32()),  # of the ID's contract among the accounts' ones
        *records.SCHEMA,
    ]
)
EVALUATED: Final = "evaluated"


def make_rows(piece: UnitPiece, accounts: Accounts, *, whole: bool = False) -> pa.Table:
    """Return the rows of a piece; with `whole`, the bytes of each line come too."""
    held = hold_lines(piece.lines, compacted=piece.compacted)
    count = len(held)
    found = records.read_records(piece.lines, np.flatnonzero(piece.lines.intact))
    rows = [
        pa.array(np.full(count, piece.unit, np.int32)),
        pa.array(held.source),
        pa.array(find_kafka_partitions(held.source)),
        pa.array(held.offset),
        pa.array(held.epoch),
        pa.array(held.event_ms),
        as_binary(np.ascontiguousarray(held.content).view(np.uint8)),
        pa.array(held.hash.view(np.int64)),
        pa.array(held.contracts, pa.binary()).take(pa.array(held.contract)),
        pa.array(held.has_columns),
        pa.array(held.compacted),
        pa.nulls(count, pa.int64()),
        slice_lines(piece.lines) if whole else pa.nulls(count, pa.binary()),
        pa.array(_find_contracts(held, accounts)),
        *found.columns,
    ]
    corrupt = {"unit": piece.unit, "corrupt": held.corrupt}
    return pa.concat_tables([pa.table(rows, schema=SCHEMA), pa.Table.from_pylist([corrupt], SCHEMA)])


def fold_rows(rows: pa.Table, accounts: Accounts) -> FoldedUnit:
    """Fold the rows of one unit, of which EVALUATED is a column: the event time that VALUE gives, as `fold` takes it.
    VALUE gave the typed columns, too. The result's rows have all columns of those that count."""
    lines, rows = _read_rows(rows)
    folded = fold(lines, accounts, rows.column(EVALUATED).fill_null(NOT_EVALUATED).to_numpy())
    if len(folded.evaluate):
        raise TerminalError(f"{len(folded.evaluate)} lines were not evaluated by their contract; report this")
    return FoldedUnit(replace(folded.summary, by_value=len(folded.counting)), rows.take(folded.counting))


def _read_rows(rows: pa.Table) -> tuple[WindowLines, pa.Table]:
    """Return the lines of these rows, and the rows of lines alone, in the same order."""
    corrupt = int(np.sum(rows.column("corrupt").fill_null(0).to_numpy()))
    rows = rows.filter(rows.column("offset").is_valid())
    contract = rows.column("contract").combine_chunks().dictionary_encode()
    lines = WindowLines(
        source=rows.column("source").to_numpy(),
        offset=rows.column("offset").to_numpy(),
        epoch=rows.column("leader_epoch").to_numpy(),
        event_ms=rows.column("line_ms").to_numpy(),
        content=np.frombuffer(get_data(rows.column("content").combine_chunks()), np.uint32).reshape(-1, 4),
        hash=rows.column("hash").to_numpy().view(np.uint64),
        contract=contract.indices.to_numpy(),
        has_columns=rows.column("has_columns").to_numpy(),
        compacted=rows.column("compacted").to_numpy(),
        contracts=tuple(contract.dictionary.to_pylist()),
        corrupt=corrupt,
    )
    return lines, rows


def _find_contracts(held: WindowLines, accounts: Accounts) -> np.ndarray:
    """Return the place of the contract that the ID of each line has."""
    place = np.empty(len(held), np.int32)
    order = np.lexsort((held.offset, held.source))
    place[order] = accounts.contract.find(held.source[order], held.offset[order])
    return np.where(place < 0, np.int32(accounts.newest), place)
