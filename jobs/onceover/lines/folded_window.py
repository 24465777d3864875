"""A window folded unit by unit: the summary of each, and the typed columns of its records that count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

import numpy as np
import pyarrow as pa

from onceover.lines.accounts import Accounts
from onceover.lines.disjoint_units import UnitPiece
from onceover.lines.fold import fold
from onceover.lines.read import Lines
from onceover.lines.summary import WindowSummary
from onceover.lines.typed_lines import ColumnFormats, TypedLines, hold_typed, join_typed

OF_LINE: Final = ("source", "offset", "line")
"""Columns of a row that has a line's bytes, without its newline."""


@dataclass(frozen=True, slots=True)
class FoldedUnit:
    """The final summary of a unit, and a row for each record that counts, in the order of IDs."""

    summary: WindowSummary
    rows: pa.Table


def fold_units(
    pieces: Iterable[UnitPiece], accounts: Accounts, formats: ColumnFormats, *, whole: bool = False
) -> Iterator[FoldedUnit | None]:
    """Fold each unit by the columns in its lines; None, and no further unit, if a record counts by its VALUE. With
    `whole`, rows have OF_LINE beside the columns."""
    for _, unit in groupby(pieces, attrgetter("unit")):
        typed = join_typed([_hold(piece, formats, whole=whole) for piece in unit])
        folded = fold(typed.lines, accounts)
        if not folded.is_by_columns:
            yield None
            return
        yield FoldedUnit(folded.summary, typed.take_columns(folded.counting))


def slice_lines(lines: Lines) -> pa.Array:
    """Return the bytes of each intact line."""
    rows = np.flatnonzero(lines.intact)
    bounds = zip(lines.start[rows].tolist(), lines.end[rows].tolist(), strict=True)
    return pa.array([bytes(lines.data[start:end]) for start, end in bounds], pa.binary())


def _hold(piece: UnitPiece, formats: ColumnFormats, *, whole: bool) -> TypedLines:
    typed = hold_typed(piece.lines, formats, compacted=piece.compacted)
    if not whole:
        return typed
    columns = typed.columns
    for name, of_line in zip(OF_LINE, (typed.lines.source, typed.lines.offset, slice_lines(piece.lines)), strict=True):
        columns = columns.append_column(name, pa.array(of_line))
    return TypedLines(typed.lines, columns)
