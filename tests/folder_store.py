"""A third raw store, which only tests know: files in a folder of this machine. It shows what a plug-in has to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from onceover.errors import BusyError, TerminalError
from onceover.raw.store import AppendResult, Buffer, HasCopy, Reading


class FolderStore:
    """A `RawStore` below the folder at `where`."""

    where = "a folder"

    def __init__(self, where: str) -> None:
        self._root = Path(where)

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        file = self._locate(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as opened:
            start = opened.tell()
            for chunk in chunks:
                opened.write(chunk)  # type: ignore[arg-type]
            opened.flush()
            os.fsync(opened.fileno())
            end = opened.tell()
        return AppendResult(start, end, self.read_length(path) == end)

    def read_length(self, path: str) -> int | None:
        file = self._locate(path)
        return file.stat().st_size if file.is_file() else None

    def read_lengths(self, paths: Iterable[str]) -> dict[str, int]:
        return {path: length for path in paths if (length := self.read_length(path)) is not None}

    def list_files(self, folder: str) -> list[tuple[str, int]]:
        place = self._locate(folder)
        return (
            [(each.name, each.stat().st_size) for each in place.iterdir() if each.is_file()] if place.is_dir() else []
        )

    def walk(self, root: str, first: str, last: str) -> Iterator[tuple[str, str, int]]:
        for folder in sorted(self.count_files(root)):
            if first <= folder <= last:
                for name, length in sorted(self.list_files(f"{root}/{folder}")):
                    yield folder, name, length

    def count_files(self, root: str) -> dict[str, int]:
        place = self._locate(root)
        folders = [each.name for each in place.iterdir() if each.is_dir()] if place.is_dir() else []
        return {name: len(self.list_files(f"{root}/{name}")) for name in folders}

    def read_bytes(self, path: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        length = self.read_length(path) or 0
        end = length if end is None else end
        if length >= end > start:
            yield self._locate(path).read_bytes()[start:end]

    def open(self, path: str, start: int, end: int) -> Reading:
        return _Reading(self._locate(path), path, start, end)

    def read(self, path: str) -> bytes | None:
        file = self._locate(path)
        return file.read_bytes() if file.is_file() else None

    def create(self, path: str, content: bytes) -> None:
        file = self._locate(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_name(f".{file.name}.{os.getpid()}")
        scratch.write_bytes(content)
        try:
            os.link(scratch, file)  # refuses a name that is taken
        except FileExistsError:
            raise BusyError(f"{path} was written by another process at the same time; try again") from None
        finally:
            scratch.unlink()

    def remove(self, path: str) -> bool:
        existed = self.read_length(path) is not None
        self._locate(path).unlink(missing_ok=True)
        return existed

    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(self._locate(folder), ignore_errors=True)

    def move(self, source: str, target: str) -> bool:
        if self.read_length(source) is None:
            raise TerminalError(f"{source} is missing")
        place = self._locate(target)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self._locate(source), place)
        except FileExistsError:
            return False
        self._locate(source).unlink()
        return True

    def copy_settings(self, source: str, target: str) -> None:
        """A folder has no settings."""

    def read_intact(self, path: str, has_copy: HasCopy) -> Iterator[bytes | None]:
        yield from self.read_bytes(path)

    def require_servers(self, path: str) -> None:
        """A folder has no servers."""

    def was_written_since(self, path: str, moment: datetime) -> bool:
        file = self._locate(path)
        return file.is_file() and file.stat().st_mtime > moment.timestamp()

    def check(self, folder: str) -> None:
        self._locate(folder).mkdir(parents=True, exist_ok=True)

    def _locate(self, path: str) -> Path:
        return self._root / path.lstrip("/")


class _Reading:
    def __init__(self, file: Path, path: str, at: int, end: int) -> None:
        self._file, self._path, self._at, self._end = file, path, at, end

    def fill(self, view: memoryview) -> None:
        if not self._file.is_file():
            raise TerminalError(f"{self._path} is missing")
        with self._file.open("rb") as opened:
            opened.seek(self._at)
            filled = opened.readinto(view)
        if filled < len(view):
            raise TerminalError(f"{self._path} ends before byte {self._end}")
        self._at += filled

    def close(self) -> None:
        """Nothing is open between two calls."""
