"""Files of raw cut into splits, of which each is read by one task: a line belongs to the split of its first byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from onceover.lines.chunks import Piece
from onceover.raw.frozen_file import FrozenFiles
from onceover.raw.parquet_lines import read_stored

SPLIT_BYTES: Final = 64 * 1024 * 1024
PARQUET_BYTES: Final = 16 * 1024 * 1024  # as large as a row group that compaction writes


@dataclass(frozen=True, slots=True)
class FileSplit:
    """Bytes `[start, end)` of a file that was frozen at `length`: text, or the Parquet of a `compacted` window."""

    path: str
    length: int
    start: int
    end: int
    compacted: bool


def cut_file(path: str, length: int, *, compacted: bool) -> Iterator[FileSplit]:
    """Yield the splits of a file; none of an empty one."""
    most = PARQUET_BYTES if compacted else SPLIT_BYTES
    for start in range(0, length, most):
        yield FileSplit(path, length, start, min(start + most, length), compacted)


def read_split(files: FrozenFiles, split: FileSplit) -> Iterator[Piece]:
    """Yield the split's lines as `FrozenFiles.read_split` or `read_stored` do, and raise what they raise."""
    if split.compacted:
        return read_stored(files, split.path, split.length, split.start, split.end)
    return files.read_split(split.path, split.start, split.end, split.length)
