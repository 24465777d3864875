"""The files of windows as a task reads them, to their frozen length: a large window in units, small ones together."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final, Protocol

from onceover.errors import OnceoverError
from onceover.lines.accounts import Accounts
from onceover.lines.chunks import CHUNK
from onceover.lines.disjoint_units import FilePiece, UnitPiece, cut_units
from onceover.lines.window_batch import BatchPiece
from onceover.raw.frozen_file import FrozenText

_EXPANSION: Final = 8  # bytes of text for a byte of a compacted file, about


@dataclass(frozen=True, slots=True)
class WindowFile:
    """A window's text with its frozen length, its compacted file if it has one, and what its lines are judged
    by. With `by_value`, VALUE gives the columns of all its records."""

    window_ms: int
    path: str
    length: int
    accounts: Accounts
    compacted: FrozenText | None = None
    by_value: bool = False

    @property
    def weight(self) -> int:
        """The bytes of text that take as long to fold."""
        return self.length + (_EXPANSION * self.compacted.length if self.compacted else 0)


class LineReader(Protocol):
    """Reads a file's lines to its frozen length, as `FrozenFiles` does."""

    def read_lines(self, path: str, length: int, chunk: int) -> Generator[memoryview, None, None]: ...


def cut_batches(files: Sequence[WindowFile], chunk: int = CHUNK) -> Iterator[list[WindowFile]]:
    """Yield the files in order, as many together as weigh `chunk` bytes; one that weighs more is alone."""
    batch: list[WindowFile] = []
    weight = 0
    for file in files:
        if batch and weight + file.weight > chunk:
            yield batch
            batch, weight = [], 0
        batch.append(file)
        weight += file.weight
    if batch:
        yield batch


def read_together(
    reader: LineReader, files: Sequence[WindowFile], failures: dict[int, str], chunk: int = CHUNK
) -> Iterator[BatchPiece]:
    """Yield the lines of these windows, numbered from 0, and set the failures of some; of these, lines may come too."""
    texts: list[memoryview] = []
    windows: list[int] = []

    def take() -> Iterator[BatchPiece]:
        if texts:
            ends = list(accumulate(len(text) + 1 for text in texts))
            yield BatchPiece(texts[0] if len(texts) == 1 else memoryview(b"\n".join(texts)), tuple(windows), ends)
            texts.clear()
            windows.clear()

    for number, file in enumerate(files):
        try:
            for compacted, text in _read_pieces(reader, file, chunk):
                if compacted or sum(map(len, texts)) + len(text) > chunk:
                    yield from take()
                if compacted:
                    yield BatchPiece(text, [number], [len(text) + 1], compacted=True)
                else:
                    texts.append(text)
                    windows.append(number)
        except OnceoverError as error:
            failures[number] = str(error)
    yield from take()


def read_units(reader: LineReader, file: WindowFile, unit_bytes: int) -> Iterator[UnitPiece]:
    """Yield the window's lines, of its text and its compacted file, as `cut_units` does."""
    yield from cut_units(partial(_read_pieces, reader, file, min(CHUNK, unit_bytes)), file.weight, unit_bytes)


def _read_pieces(reader: LineReader, file: WindowFile, chunk: int) -> Iterator[FilePiece]:
    with closing(reader.read_lines(file.path, file.length, chunk)) as text:
        yield from ((False, piece) for piece in text)
    if file.compacted is not None:
        with closing(reader.read_lines(file.compacted.path, file.compacted.length, chunk)) as other:
            yield from ((True, piece) for piece in other)
