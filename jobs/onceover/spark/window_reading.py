"""The files of windows as a task reads them, to their frozen length: a large window in units, small ones together."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar

from onceover.errors import OnceoverError
from onceover.lines.accounts import Accounts
from onceover.lines.chunks import CHUNK
from onceover.lines.disjoint_units import FilePiece, UnitPiece, cut_units
from onceover.lines.window_batch import BatchPiece
from onceover.raw.frozen_file import FrozenText

T = TypeVar("T")
BATCH: Final = 4 * CHUNK
"""Bytes of text that are folded together: more do not come cheaper, and memory holds their lines without VALUE."""
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


def cut_batches(files: Sequence[WindowFile], size: int = BATCH) -> Iterator[list[WindowFile]]:
    """Yield the files in order, as many together as weigh `size` bytes; one that weighs more is alone."""
    batch: list[WindowFile] = []
    weight = 0
    for file in files:
        if batch and weight + file.weight > size:
            yield batch
            batch, weight = [], 0
        batch.append(file)
        weight += file.weight
    if batch:
        yield batch


def read_batches(
    reader: LineReader, files: Sequence[WindowFile], failures: dict[int, str], chunk: int = CHUNK, size: int = BATCH
) -> Generator[tuple[list[WindowFile], Iterator[BatchPiece]], None, None]:
    """Yield each batch with its pieces, which are read before the next batch; a thread reads one piece ahead. A window
    that cannot be read is in the failures, by its start in ms, once the next batch comes; lines of it may come."""

    def read_all() -> Iterator[tuple[int, BatchPiece | None]]:
        for number, batch in enumerate(batches):
            yield number, None
            yield from ((number, piece) for piece in read_together(reader, batch, failures, chunk))

    batches = list(cut_batches(files, size))
    with closing(_read_ahead(read_all())) as read:
        for number, pieces in groupby(read, itemgetter(0)):
            yield batches[number], (piece for _, piece in pieces if piece is not None)


def read_together(
    reader: LineReader, files: Sequence[WindowFile], failures: dict[int, str], chunk: int = CHUNK
) -> Iterator[BatchPiece]:
    """Yield the lines of these windows, numbered from 0, and add the failures of some, by their start in ms."""
    texts: list[memoryview] = []
    windows: list[int] = []
    size, is_compacted = 0, False

    def take() -> Iterator[BatchPiece]:
        nonlocal size
        if texts:
            ends = list(accumulate(len(text) + 1 for text in texts))
            text = texts[0] if len(texts) == 1 else memoryview(b"\n".join(texts))
            yield BatchPiece(text, tuple(windows), ends, is_compacted)
            texts.clear()
            windows.clear()
            size = 0

    for number, file in enumerate(files):
        try:
            for compacted, text in _read_pieces(reader, file, chunk):
                if compacted != is_compacted or size + len(text) > chunk:
                    yield from take()
                is_compacted = compacted
                texts.append(text)
                windows.append(number)
                size += len(text)
        except OnceoverError as error:
            failures[file.window_ms] = str(error)
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


def _read_ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield these items; a thread makes the next one meanwhile."""
    end = object()
    with ThreadPoolExecutor(1, "reads ahead") as pool:
        coming: Future[Any] = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item
