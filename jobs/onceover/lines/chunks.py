"""A file's bytes cut into pieces of whole lines: 4 MiB at a time, or one line that is longer.

A big file is read in splits, each by a reader of its own, with bounds moved to where a line begins: so a line belongs
to the split that holds its first byte.

    file      aaaa\nbbbbbbbb\ncccc\ndd      an unended last line is a line, too
    splits    |--------|--------|----|
    lines     |----------------||----|      a and b; none; c and d
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from onceover.lines.line_format import LONGEST_COLUMNS, LONGEST_LINE

CHUNK: Final = 4 * 1024 * 1024
LONGEST: Final = LONGEST_LINE + LONGEST_COLUMNS + 64 * 1024  # of a line with all its fields
TOO_LONG: Final = b"?"
"""In place of a longer line, which Onceover did not write, so that its bytes need not be held: a corrupt line."""

Fill = Callable[[memoryview], object]
"""Fills the buffer with the file's next bytes, or raises."""


def cut_lines(fill: Fill, size: int, chunk: int = CHUNK, longest: int = LONGEST) -> Iterator[memoryview]:
    """Yield the next `size` bytes, which begin with a line, in pieces of whole lines. Asks for no byte beyond.
    Each piece is a buffer of its own. `longest` is no less than `chunk`."""
    kept, is_lost = b"", False  # `kept` begins a line; of one that `is_lost` it is the rest
    while size:
        wanted = min(chunk, size)
        buffer = bytearray(len(kept) + wanted)
        buffer[: len(kept)] = kept
        fill(memoryview(buffer)[len(kept) :])
        size -= wanted
        if is_lost or len(buffer) > longest:
            newline = buffer.find(b"\n", len(kept))
            rest = newline if newline >= 0 else len(buffer)
            if is_lost or rest > longest:
                if not is_lost:
                    yield memoryview(TOO_LONG)
                is_lost = newline < 0
                buffer = buffer[rest + 1 :]
        cut = buffer.rfind(b"\n") + 1 if size else len(buffer)
        if cut:
            yield memoryview(buffer)[:cut]
        kept = bytes(memoryview(buffer)[cut:])


def cut_text(text: bytes, chunk: int = CHUNK) -> Iterator[memoryview]:
    """Yield text in pieces of whole lines, as `cut_lines` does, without a copy: of `chunk` bytes, or of one line that
    is longer."""
    start, view = 0, memoryview(text)
    while start < len(text):
        end = len(text)
        if end - start > chunk:
            end = text.rfind(b"\n", start, start + chunk) + 1 or text.find(b"\n", start + chunk) + 1 or end
        yield view[start:end]
        start = end


def find_line(fill: Fill, start: int, end: int, chunk: int = 256 * 1024) -> int:
    """Return where the first line begins in `[start, end)`, or `end`. `fill` reads on from the byte before `start`,
    which shows whether a line begins there."""
    at = start - 1
    while 0 <= at < end:
        buffer = bytearray(min(chunk, end - at))
        fill(memoryview(buffer))
        newline = buffer.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(buffer)
    return max(at, 0)
