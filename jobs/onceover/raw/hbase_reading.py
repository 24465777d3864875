"""A file on HBase read by a task: cell after cell, which must follow each other without a gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from onceover.errors import TerminalError, UnreachableError
from onceover.raw.hbase_cells import Cells


class HBaseReading:
    """A `Reading`. One that breaks off goes on once where it stopped, as a region may move to another server."""

    def __init__(self, cells: Cells, find: Callable[[], str], path: str, at: int, end: int) -> None:
        self._cells, self._find, self._path = cells, find, path
        self._at, self._end = at, end
        self._pieces: Iterator[tuple[int, bytes]] | None = None
        self._piece = memoryview(b"")
        self._has_failed = False  # since when not a byte has come

    def fill(self, view: memoryview) -> None:
        """See Reading."""
        filled = 0
        while filled < len(view):
            if not self._piece:
                self._piece = memoryview(self._read())
            taken = self._piece[: len(view) - filled]
            view[filled : filled + len(taken)] = taken
            self._piece = self._piece[len(taken) :]
            filled += len(taken)

    def close(self) -> None:
        """See Reading."""
        self._pieces = None

    def _read(self) -> bytes:
        while True:
            try:
                if self._pieces is None:
                    self._pieces = list_pieces(self._cells, self._find(), self._path, self._at, self._end)
                start, piece = next(self._pieces)
            except StopIteration:
                raise TerminalError(
                    f"{self._path} ends before byte {self._end}, where it was frozen; it was cut or replaced: run the "
                    "command again, which freezes it again"
                ) from None
            except UnreachableError as error:
                if self._has_failed:
                    raise UnreachableError(
                        f"reading {self._path} stopped at byte {self._at} of {self._end}: {error}"
                    ) from error
                self._has_failed, self._pieces = True, None
                continue
            self._at, self._has_failed = start + len(piece), False
            return piece


def list_pieces(cells: Cells, prefix: str, path: str, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes `[start, end)` of the file whose cells have that prefix, each piece with its place; fewer if the
    file is shorter. Raise TerminalError, naming the path, where a cell is missing."""
    if start >= end:
        return
    first = cells.find_last(prefix, f"{prefix}{start:016x}")
    at = start
    for row, cell in cells.scan(first[0] if first else prefix, f"{prefix}{end:016x}"):
        place = int(row.removeprefix(prefix), 16)
        if place > at or place + len(cell) < at:
            raise TerminalError(
                f"{path} on HBase lacks its bytes from {at} on, before cell {place}: a row of table onceover_raw is "
                "missing; `onceover reread` puts the window together again from Kafka"
            )
        piece = cell[at - place : end - place]
        if piece:
            yield at, piece
        at = max(at, place + len(cell))
