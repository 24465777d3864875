"""A window's Parquet file read by a task: its rows as the lines that they were, in pieces, as text is read."""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import closing
from typing import Final, Protocol

import pyarrow as pa
from pyarrow import parquet

from onceover.errors import TerminalError, UsageError
from onceover.lines.chunks import CHUNK, Piece
from onceover.lines.stored import SCHEMA, frame_stored
from onceover.raw.hdfs import take_first_line

_SMALL: Final = 8 * 1024 * 1024  # bytes of a file that is read by one request
_MOST_ROWS: Final = 65_536


class RangeReader(Protocol):
    """Reads any bytes of a file, as `FrozenFiles` does."""

    def read_into(self, path: str, start: int, view: memoryview) -> None: ...


def read_stored(
    files: RangeReader, path: str, length: int, start: int = 0, end: int | None = None
) -> Generator[Piece, None, None]:
    """Yield the lines of the row groups that begin in `[start, end)` of a file of that length, all by default. Memory
    holds a column of a row group as it is stored, and a piece.

    Raise TerminalError for what compaction did not write or is damaged, and what `FrozenFiles` raises; all name the
    file. A row whose hash differs gives a corrupt line.
    """
    position = 0
    try:
        with closing(parquet.ParquetFile(_open(files, path, length))) as file:
            names = file.schema_arrow.names
            if other := [name for name in SCHEMA.names if names.count(name) != 1]:
                raise UsageError(f"it has {names.count(other[0]) or 'no'} columns `{other[0]}`")
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                if not start <= _find_start(group) < (length if end is None else end):
                    continue
                rows = group.num_rows * CHUNK // max(group.total_byte_size, 1)
                for batch in file.iter_batches(
                    max(1, min(rows, _MOST_ROWS)), [number], SCHEMA.names, use_threads=False
                ):
                    text = frame_stored(batch)
                    yield position, text
                    position += len(text)
    except (pa.ArrowException, OSError, ValueError, UsageError) as error:
        raise TerminalError(
            f"{path} is not as compaction wrote it: {take_first_line(error).partition(';')[0]}; put it back where "
            "`onceover explain` says"
        ) from error


def _open(files: RangeReader, path: str, length: int) -> pa.NativeFile:
    if length > _SMALL:
        return pa.PythonFile(_RangedFile(files, path, length), "r")
    data = bytearray(length)
    if data:
        files.read_into(path, 0, memoryview(data))
    return pa.BufferReader(data)


def _find_start(group: parquet.RowGroupMetaData) -> int:
    first = group.column(0)
    return int(first.dictionary_page_offset or first.data_page_offset)


class _RangedFile(io.RawIOBase):
    """A file of which each read is a request of its own."""

    def __init__(self, files: RangeReader, path: str, length: int) -> None:
        self._files, self._path, self._length, self._at = files, path, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        left = max(self._length - self._at, 0)
        data = bytearray(left if size < 0 else min(size, left))
        if data:
            self._files.read_into(self._path, self._at, memoryview(data))
        self._at += len(data)
        return bytes(data)
