"""A file's lines, one line at a time, and what it holds beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onceover.lines.chunks import LONGEST
from onceover.lines.escapes import CorruptLineError
from onceover.lines.line_format import Line, decode


def decode_file(chunks: Iterable[bytes], longest: int = LONGEST) -> Iterator[Line | CorruptLineError]:
    """Yield every line of a file, read in chunks of any size, in order, or why it is none; skip empty lines.

    Memory holds one line and one chunk at a time. A stretch of more than `longest` bytes without a newline is reported
    as one corrupt line and skipped.
    """
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield from _decode(size + end - start, [*pieces, chunk[start:end]], longest)
            pieces, size, start = [], 0, end + 1
        size += len(chunk) - start
        if size > longest:
            pieces = []
        else:
            pieces.append(chunk[start:])
    yield from _decode(size, pieces, longest)


def read_intact(chunks: Iterable[bytes]) -> Iterator[Line]:
    """Yield every intact line of a file, as `decode_file` does."""
    return (line for line in decode_file(chunks) if isinstance(line, Line))


def _decode(size: int, pieces: list[bytes], longest: int) -> Iterator[Line | CorruptLineError]:
    if size > longest:
        yield CorruptLineError("there is no newline", size)
    elif size:
        try:
            yield decode(b"".join(pieces))
        except CorruptLineError as error:
            yield error
