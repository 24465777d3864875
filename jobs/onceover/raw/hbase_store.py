"""Raw on HBase: files of cells of whole lines. docs/raw-stores.md has the rows, and docs/decisions.md says why.

A file's name is a row, `n:PATH`. Its value names the file's cells; only compare-and-set changes it, and no value comes
twice, so that a process that was paused changes nothing it has not seen. A cell is a row `SALT PATH@ID:START`: bytes of
the file from START on, put once. Of two writers at one end of a file only one can put its cell.

    CELLS NONCE             the file is here
    CELLS NONCE to TARGET   it is being moved: who reads this ends the move first
    - NONCE [CELLS]         no file is here; cells that a killed removal has left
"""

from __future__ import annotations

import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from onceover.errors import BusyError, TerminalError, UnknownOutcomeError, UnreachableError
from onceover.raw.hbase_cells import Cells, to_text
from onceover.raw.hbase_reading import HBaseReading, list_pieces
from onceover.raw.store import AppendResult, Buffer, HasCopy, Reading

CELL_BYTES: Final = 1 << 20
"""Most bytes of a cell: HBase's client refuses 10 MB, and a Thrift server holds some of them at once."""
_SALTS: Final = "01234567"  # so that the windows of one batch are rows of several regions
_GONE: Final = "-"


@dataclass(frozen=True, slots=True)
class _Named:
    """A name's value as it is stored, and the prefix of the rows of its cells."""

    value: bytes
    cells: str


class HBaseStore:
    """A `RawStore`: files in the table `onceover_raw` of the HBase behind that Thrift server."""

    where = "HBase"

    def __init__(self, thrift: str) -> None:
        self._cells = Cells(thrift)

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        """See RawStore."""
        named = self._find(path) or self._make(path)
        start = at = self._measure(named)
        for cell in cut_cells(chunks):
            self._put(path, named, at, cell, is_first=at == start)
            at += len(cell)
        again = self._find(path)
        return AppendResult(start, at, again is not None and again.cells == named.cells and self._measure(again) == at)

    def _put(self, path: str, named: _Named, at: int, cell: bytes, *, is_first: bool) -> None:
        try:
            is_ours = self._cells.swap(f"{named.cells}{at:016x}", None, cell)
        except UnreachableError as error:
            raise UnknownOutcomeError(
                f"an append to {path} broke off at byte {at} ({error}): its outcome is unknown, so the batch is read "
                "again"
            ) from error
        if not is_ours:
            what = f"{path} on HBase is written by another process at the same time, at byte {at}; try again"
            raise BusyError(what) if is_first else UnknownOutcomeError(what)

    def read_length(self, path: str) -> int | None:
        """See RawStore."""
        named = self._find(path)
        return None if named is None else self._measure(named)

    def read_lengths(self, paths: Iterable[str]) -> dict[str, int]:
        """See RawStore."""
        lengths = ((path, self.read_length(path)) for path in paths)
        return {path: length for path, length in lengths if length is not None}

    def list_files(self, folder: str) -> list[tuple[str, int]]:
        """See RawStore."""
        root, _, name = folder.rpartition("/")
        return [(file, length) for _, file, length in self.walk(root, name, name)]

    def walk(self, root: str, first: str, last: str) -> Iterator[tuple[str, str, int]]:
        """See RawStore."""
        for path in self._list_names(f"{root}/{first}/", f"{root}/{last}0"):  # 0 follows the slash
            folder, slash, name = path.removeprefix(f"{root}/").partition("/")
            if slash and "/" not in name and (length := self.read_length(path)) is not None:
                yield folder, name, length

    def count_files(self, root: str) -> dict[str, int]:
        """See RawStore."""
        parts = (path.removeprefix(f"{root}/").split("/") for path in self._list_names(f"{root}/", f"{root}0"))
        return dict(Counter(each[0] for each in parts if len(each) == 2))

    def read_bytes(self, path: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """See RawStore."""
        named = self._find(path)
        length = 0 if named is None else self._measure(named)
        end = length if end is None else end
        if named is not None and length >= end > start:
            for _, piece in list_pieces(self._cells, named.cells, path, start, end):
                yield piece

    def open(self, path: str, start: int, end: int) -> Reading:
        """See RawStore."""
        return HBaseReading(self._cells, lambda: self._require(path).cells, path, start, end)

    def read(self, path: str) -> bytes | None:
        """See RawStore."""
        named = self._find(path)
        if named is None:
            return None
        pieces = list_pieces(self._cells, named.cells, path, 0, self._measure(named))
        return b"".join(piece for _, piece in pieces)

    def create(self, path: str, content: bytes) -> None:
        """See RawStore."""
        made, at = _Named(b"", _name_cells(path)), 0
        for cell in cut_cells([content]):
            self._put(path, made, at, cell, is_first=True)
            at += len(cell)
        if not self._take(path, made.cells):
            self._remove_cells(made.cells)
            raise BusyError(f"{path} on HBase was written by another process at the same time; try again")

    def remove(self, path: str) -> bool:
        """See RawStore."""
        named = self._find(path)
        is_removed = named is not None and self._set(path, named.value, _make_value(_GONE, named.cells))
        self._sweep(path)
        return is_removed

    def remove_folder(self, folder: str) -> None:
        """See RawStore."""
        for path in list(self._list_names(f"{folder}/", f"{folder}0")):
            self.remove(path)

    def move(self, source: str, target: str) -> bool:
        """See RawStore."""
        named = self._require(source)
        marked = named.value + f" to {target}".encode()
        if not self._set(source, named.value, marked):
            raise BusyError(f"{source} on HBase is written by another process at the same time; try again")
        return self._end_move(source, marked)

    def copy_settings(self, source: str, target: str) -> None:
        """See RawStore. All cells have the copies that the table's files on HDFS have."""

    def read_intact(self, path: str, has_copy: HasCopy) -> Iterator[bytes | None]:
        """See RawStore. Bytes are lost where a cell is missing; a region that cannot be read may come back."""
        named, at = self._require(path), 0
        for row, cell in self._cells.scan(named.cells, _end(named.cells)):
            start = int(row.removeprefix(named.cells), 16)
            if start > at:
                yield None
            yield cell
            at = start + len(cell)

    def require_servers(self, path: str) -> None:
        """See RawStore."""
        self._cells.require_regions()

    def was_written_since(self, path: str, moment: datetime) -> bool:
        """See RawStore."""
        named = self._find(path)
        last = None if named is None else self._cells.find_last(named.cells, _end(named.cells))
        return last is not None and last[2] > moment.timestamp() * 1000

    def check(self, folder: str) -> None:
        """See RawStore. Takes a write: an empty file, which goes again."""
        self._take(f"{folder}/.check", _name_cells(folder))
        self.remove(f"{folder}/.check")

    def _find(self, path: str) -> _Named | None:
        """Return the file of that name; end a move away from it first, if that was killed."""
        while (value := self._cells.get(f"n:{path}")) is not None and (cells := _read_cells(value)):
            if b" to " not in value:
                return _Named(value, cells)
            self._end_move(path, value)
        return None

    def _require(self, path: str) -> _Named:
        if (named := self._find(path)) is None:
            raise TerminalError(f"{path} on HBase is missing; `onceover explain` has more")
        return named

    def _make(self, path: str) -> _Named:
        self._take(path, _name_cells(path))
        return self._require(path)  # another process may have been first

    def _take(self, path: str, cells: str) -> bool:
        """Give these cells that name; return False if another file has it."""
        self._sweep(path)
        before = self._cells.get(f"n:{path}")
        taken_by = _read_cells(before)
        return taken_by == cells if taken_by else self._set(path, before, _make_value(cells))

    def _end_move(self, source: str, marked: bytes) -> bool:
        """Take the target's name for a marked file and give up its own; return False, and undo the mark, if another
        file has that name.

        The target's value is read before the mark: if the target can be taken with it, no other process has ended this
        move.
        """
        named, _, target = to_text(marked).partition(" to ")
        cells = named.partition(" ")[0]
        self._sweep(target)
        before = self._cells.get(f"n:{target}")
        if self._cells.get(f"n:{source}") != marked:
            there = self._find(target)
            return there is not None and there.cells == cells
        if taken_by := _read_cells(before):
            is_there = taken_by == cells
        else:
            is_there = self._set(target, before, _make_value(cells)) or self._has(target, cells)
        self._set(source, marked, _make_value(_GONE) if is_there else _make_value(cells))
        return is_there

    def _has(self, path: str, cells: str) -> bool:
        return _read_cells(self._cells.get(f"n:{path}")) == cells

    def _set(self, path: str, expected: bytes | None, value: bytes) -> bool:
        """Set a name's value if it is the expected one. A server that repeats a request may deny what it has done: no
        other process writes that value."""
        return self._cells.swap(f"n:{path}", expected, value) or self._cells.get(f"n:{path}") == value

    def _sweep(self, path: str) -> None:
        """Delete the cells that a removal has left."""
        value = self._cells.get(f"n:{path}")
        parts = to_text(value).split(" ") if value is not None else []
        if value is not None and parts[0] == _GONE and len(parts) == 3:
            self._remove_cells(parts[2])
            self._set(path, value, _make_value(_GONE))

    def _list_names(self, first: str, end: str) -> Iterator[str]:
        """Yield the names of files in `[first, end)`, in order."""
        for row, value in self._cells.scan_small(f"n:{first}", f"n:{end}"):
            if _read_cells(value):
                yield row.removeprefix("n:")

    def _measure(self, named: _Named) -> int:
        last = self._cells.find_last(named.cells, _end(named.cells))
        return 0 if last is None else int(last[0].removeprefix(named.cells), 16) + last[1]

    def _remove_cells(self, cells: str) -> None:
        rows = [row for row, _ in self._cells.scan_lengths(cells, _end(cells))]
        self._cells.remove(rows[::-1])


def cut_cells(chunks: Iterable[Buffer]) -> Iterator[bytes]:
    """Yield the bytes of all chunks in cells of at most CELL_BYTES that end with a line, or in the middle of one that
    is longer."""
    kept = bytearray()
    for chunk in chunks:
        kept += chunk  # type: ignore[arg-type]
        while len(kept) > CELL_BYTES:
            end = kept.rfind(b"\n", 0, CELL_BYTES) + 1 or CELL_BYTES
            yield bytes(kept[:end])
            del kept[:end]
    if kept:
        yield bytes(kept)


def _name_cells(path: str) -> str:
    return f"{_SALTS[zlib.crc32(path.encode()) % len(_SALTS)]}{path}@{uuid.uuid4().hex[:16]}:"


def _read_cells(value: bytes | None) -> str | None:
    """Return the prefix of the cells that a name's value names, None if no file is there."""
    first = "" if value is None else to_text(value).partition(" ")[0]
    return first if first not in ("", _GONE) else None


def _make_value(first: str, *more: str) -> bytes:
    """Return a name's value that was never there before."""
    return " ".join((first, uuid.uuid4().hex, *more)).encode()


def _end(cells: str) -> str:
    return f"{cells[:-1]};"  # follows the colon
