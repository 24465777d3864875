"""One window's file folded as it is read: its summary, and the typed columns of the records that count.

A fold that needs VALUE, or more memory than a task has, is left to the shuffle (`line_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa

from onceover.lines.accounts import Accounts
from onceover.lines.chunks import Piece
from onceover.lines.fold import fold
from onceover.lines.read import read
from onceover.lines.summary import WindowSummary
from onceover.lines.typed_lines import ColumnFormats, TypedLines, hold_typed, join_typed

MOST_LINES: Final = 1_000_000  # a fold takes some 200 bytes for each
MOST_BYTES: Final = 256 * 1024 * 1024  # of lines without VALUE


class Shuffled(Enum):
    """Why a window is left to the shuffle."""

    IS_LARGE = "it is too large to be folded by one task"
    NEEDS_VALUE = "some of its records count by their value"


@dataclass(frozen=True, slots=True)
class FoldedWindow:
    """The final summary of a window, and a row for each record that counts, in the order of IDs."""

    summary: WindowSummary
    rows: pa.Table


def fold_window(
    pieces: Iterable[Piece],
    accounts: Accounts,
    formats: ColumnFormats,
    most_lines: int = MOST_LINES,
    most_bytes: int = MOST_BYTES,
    *,
    compacted: Iterable[Piece] = (),
) -> FoldedWindow | Shuffled:
    """Fold a window's text, and the lines of its `compacted` file."""
    parts: list[TypedLines] = []
    lines = held = 0
    flagged = chain(((False, *each) for each in pieces), ((True, *each) for each in compacted))
    for is_compacted, position, text in flagged:
        part = hold_typed(read(text), position, formats, compacted=is_compacted)
        lines, held = lines + len(part), held + part.nbytes
        if lines > most_lines or held > most_bytes:
            return Shuffled.IS_LARGE
        parts.append(part)
    typed = join_typed(parts or [hold_typed(read(memoryview(b"")), 0, formats)])
    del parts
    folded = fold(typed.lines, accounts)
    if len(folded.evaluate) or folded.from_value.any():
        return Shuffled.NEEDS_VALUE
    in_order = len(folded.counting) == len(typed) and bool((folded.counting == np.arange(len(typed))).all())
    return FoldedWindow(folded.summary, typed.columns if in_order else typed.columns.take(folded.counting))
