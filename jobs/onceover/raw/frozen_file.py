"""A window file read by a task, to its frozen length and no further, in pieces of whole lines, compacted or not."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

from onceover.lines.chunks import CHUNK, cut_lines, find_line
from onceover.model.raw_file import COMPACTED
from onceover.raw.store import open_store
from onceover.raw.zstd_file import read_frames


@dataclass(frozen=True, slots=True)
class FrozenText:
    """A window's text, or its compacted file: its path, and the length at which it was frozen."""

    path: str
    length: int


class FrozenFiles:
    """Files of the raw store at that address. Make it in the task: sessions do not survive a fork. One reader at a time
    keeps the connection."""

    def __init__(self, address: str) -> None:
        self._store = open_store(address)

    def read_lines(self, path: str, length: int, chunk: int = CHUNK) -> Generator[memoryview, None, None]:
        """Yield the first `length` bytes as `cut_lines` does, those of a compacted file as `read_frames`. Raise
        UnreachableError, or TerminalError if the file is missing, shorter, or not as compaction wrote it; both name the
        file."""
        if path.endswith(COMPACTED):
            yield from read_frames(self._store.open, path, length, chunk=chunk)
        elif length:
            with closing(self._store.open(path, 0, length)) as reading:
                yield from cut_lines(reading.fill, length, chunk)

    def read_split(self, path: str, start: int, end: int, length: int, chunk: int = CHUNK) -> Iterator[memoryview]:
        """Yield the lines that begin in `[start, end)` of a file that was frozen at `length`, as `read_lines` does; of
        a compacted file those of the frames that begin there."""
        if path.endswith(COMPACTED):
            yield from read_frames(self._store.open, path, length, start, end, chunk)
            return
        first, after = (self._find_line(path, at, length) for at in (start, end))
        if first < after:
            with closing(self._store.open(path, first, after)) as reading:
                yield from cut_lines(reading.fill, after - first, chunk)

    def _find_line(self, path: str, start: int, length: int) -> int:
        if not 0 < start < length:
            return min(start, length)
        with closing(self._store.open(path, start - 1, length)) as reading:
            return find_line(reading.fill, start, length)
