"""A window file read by a task, to its frozen length and no further, in pieces of whole lines."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

from onceover.lines.chunks import CHUNK, Piece, cut_lines, find_line
from onceover.raw.store import open_store


class FrozenFiles:
    """Files of the raw store at that address. Make it in the task: sessions do not survive a fork. One reader at a time
    keeps the connection."""

    def __init__(self, address: str) -> None:
        self._store = open_store(address)

    def read_lines(self, path: str, length: int, chunk: int = CHUNK) -> Generator[Piece, None, None]:
        """Yield the first `length` bytes as `cut_lines` does. Raise UnreachableError, or TerminalError if the file is
        missing or shorter; both name the file."""
        if length:
            with closing(self._store.open(path, 0, length)) as reading:
                yield from cut_lines(reading.fill, 0, length, chunk)

    def read_split(self, path: str, start: int, end: int, length: int, chunk: int = CHUNK) -> Iterator[Piece]:
        """Yield the lines that begin in `[start, end)` of a file that was frozen at `length`, as `read_lines` does."""
        first, after = (self._find_line(path, at, length) for at in (start, end))
        if first < after:
            with closing(self._store.open(path, first, after)) as reading:
                yield from cut_lines(reading.fill, first, after, chunk)

    def read_into(self, path: str, start: int, view: memoryview) -> None:
        """Fill the view with the file's bytes from `start` on. Raises what `read_lines` raises."""
        with closing(self._store.open(path, start, start + len(view))) as reading:
            reading.fill(view)

    def _find_line(self, path: str, start: int, length: int) -> int:
        if not 0 < start < length:
            return min(start, length)
        with closing(self._store.open(path, start - 1, length)) as reading:
            return find_line(reading.fill, start, length)
