"""The file of lines, one line at a time: appends, and what a file holds beside damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onceover.lines.chunks import LONGEST
from onceover.lines.escapes import CorruptLineError
from onceover.lines.line_reference import Line, decode


@dataclass(frozen=True, slots=True)
class PlacedLine:
    """An intact line and the byte position in its file where it starts."""

    position: int
    line: Line


@dataclass(frozen=True, slots=True)
class CorruptLine:
    """A stretch of a file that is not an intact line."""

    position: int
    size: int
    problem: str


def join_append(lines: Iterable[bytes]) -> bytes:
    """Return the bytes of one append. They begin and end with a newline, so that a torn tail never joins the next
    record.

    Without lines there are no bytes: no append is empty.
    """
    text = b"\n".join(lines)
    return b"\n" + text + b"\n" if text else b""


def decode_file(chunks: Iterable[bytes], longest: int = LONGEST) -> Iterator[PlacedLine | CorruptLine]:
    """Yield every line of a file, read in chunks of any size, in order; skip empty lines.

    Memory holds one line and one chunk at a time. A stretch of more than `longest` bytes without a newline is reported
    as one corrupt line and skipped.
    """
    position = 0  # in the file, of the first byte in `pieces`
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield from _placed(position, size + end - start, [*pieces, chunk[start:end]], longest)
            position += size + end - start + 1
            pieces, size, start = [], 0, end + 1
        size += len(chunk) - start
        if size > longest:
            pieces = []
        else:
            pieces.append(chunk[start:])
    yield from _placed(position, size, pieces, longest)


def _placed(position: int, size: int, pieces: list[bytes], longest: int) -> Iterator[PlacedLine | CorruptLine]:
    if size > longest:
        yield CorruptLine(position, size, f"there is no newline in {size} bytes")
    elif size:
        try:
            yield PlacedLine(position, decode(b"".join(pieces)))
        except CorruptLineError as error:
            yield CorruptLine(position, size, error.problem)
