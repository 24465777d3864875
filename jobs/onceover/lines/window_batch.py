"""Windows folded together: their text is read as one, each is judged by its own accounts, their rows are one table.

    window 0  window 1    window 2
    a b c     d e f g     h i            one read of bounds, hashes and columns; one fold of the plain windows

What numpy, Arrow and Polars take for a call is what they take for a hundred lines: a window alone has not many more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from onceover.lines.accounts import Accounts
from onceover.lines.fold import fold
from onceover.lines.plain_windows import fold_plain
from onceover.lines.read import read
from onceover.lines.summary import WindowSummary
from onceover.lines.typed_lines import ColumnFormats, TypedLines, hold_typed, join_typed


@dataclass(frozen=True, slots=True)
class BatchPiece:
    """Whole lines of some of a batch's windows, by their numbers in it, in order: those of `windows[n]` end at
    `ends[n]`. All are of text, or all of `compacted` files."""

    text: memoryview
    windows: Sequence[int]
    ends: Sequence[int]
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class FoldedBatch:
    """The summary of each window, None if a record counts by its VALUE; and a row for each record that counts in the
    other windows, in their order, with the number of its `window`."""

    summaries: list[WindowSummary | None]
    window: np.ndarray
    rows: pa.Table


def fold_batch(pieces: Iterable[BatchPiece], accounts: Sequence[Accounts], formats: ColumnFormats) -> FoldedBatch:
    """Fold the windows that have these accounts, by the columns in their lines. Pieces are in the order of windows."""
    corrupt, window, held = np.zeros(len(accounts), np.int64), list[np.ndarray](), list[TypedLines]()
    for piece in pieces:
        lines = read(piece.text)
        of_line = np.asarray(piece.windows)[np.searchsorted(piece.ends, lines.start, "right")]
        corrupt += np.bincount(of_line[~lines.intact], minlength=len(accounts))
        window.append(of_line[lines.intact])
        held.append(hold_typed(lines, formats, compacted=piece.compacted))
    if not held:
        window, held = [np.empty(0, np.int64)], [hold_typed(read(memoryview(b"")), formats)]
    typed, of_row = join_typed(held), np.concatenate(window)
    bounds = np.searchsorted(of_row, np.arange(len(accounts) + 1))
    plain = fold_plain(typed.lines, bounds, corrupt, accounts)
    counting, summaries = [plain.counting], dict[int, WindowSummary | None](plain.summaries)
    for number, (start, end) in enumerate(pairwise(bounds.tolist())):
        if number not in plain.summaries:
            folded = fold(typed.lines.slice(start, end, int(corrupt[number])), accounts[number])
            summaries[number] = folded.summary if folded.is_by_columns else None
            counting += [start + folded.counting] if folded.is_by_columns else []
    chosen = np.concatenate(counting)
    chosen = chosen[np.argsort(of_row[chosen], kind="stable")]
    return FoldedBatch(
        [summaries[number] for number in range(len(accounts))], of_row[chosen], typed.take_columns(chosen)
    )
