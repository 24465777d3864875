"""Files of raw cut into splits, of which each is read by one task: a line, or a compacted file's frame, belongs to the
split of its first byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from onceover.model.raw_file import COMPACTED

SPLIT_BYTES: Final = 64 * 1024 * 1024
COMPACTED_BYTES: Final = 8 * 1024 * 1024  # of some frames, which hold about eight times as much text


@dataclass(frozen=True, slots=True)
class FileSplit:
    """Bytes `[start, end)` of a file that was frozen at `length`."""

    path: str
    start: int
    end: int
    length: int


def cut_file(path: str, length: int) -> Iterator[FileSplit]:
    """Yield the splits of a file; none of an empty one."""
    most = COMPACTED_BYTES if path.endswith(COMPACTED) else SPLIT_BYTES
    for start in range(0, length, most):
        yield FileSplit(path, start, min(start + most, length), length)
