"""A pipeline's window and quarantine files in its raw store: their lengths, their listing, and appends to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time

from onceover.errors import BusyError, TerminalError, UnknownOutcomeError
from onceover.model.digest import Digest
from onceover.model.raw_file import COMPACTED, CompactedFile, RawFile
from onceover.raw.expired_list import ExpiredList
from onceover.raw.layout import Layout
from onceover.raw.store import AppendResult, Buffer, open_store

_FIRST_DAY, _LAST_DAY = "0000-01-01", "9999-12-31"


class WindowFiles:
    """One pipeline's files in the store at that address. Make it in the process that uses it: sessions do not survive a
    fork."""

    def __init__(self, address: str, layout: Layout) -> None:
        self.layout = layout
        self._store = open_store(address)
        self.expired = ExpiredList(self._store, layout)

    @property
    def where(self) -> str:
        """Return the store's name in messages."""
        return self._store.where

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        """Append the chunks to the file; create it if missing. Raise as `RawStore.append`."""
        return self._store.append(path, chunks)

    def read_length(self, path: str) -> int | None:
        """Return the bytes of a file, None if it is missing."""
        return self._store.read_length(path)

    def read_lengths(self, window_starts: Iterable[datetime]) -> dict[datetime, int]:
        """Return the bytes of each window's existing file; list each day's folder once."""
        starts = {self.layout.window_file(start): start for start in window_starts}
        return {starts[path]: length for path, length in self._store.read_lengths(starts).items()}

    def find_compacted_files(self, compacted: Mapping[datetime, CompactedFile]) -> dict[datetime, str]:
        """Return the paths of these windows' compacted files that exist and have the recorded length."""
        paths = {start: self.layout.compacted_file(start, file.digest) for start, file in compacted.items()}
        lengths = self._store.read_lengths(paths.values())
        return {start: path for start, path in paths.items() if lengths.get(path) == compacted[start].bytes}

    def read_compacted_lengths(self, digests: Mapping[datetime, Digest]) -> dict[datetime, int]:
        """Return the bytes of each existing compacted file that is named for a window and the digest of its records."""
        paths = {self.layout.compacted_file(start, digest): start for start, digest in digests.items()}
        return {paths[path]: length for path, length in self._store.read_lengths(paths).items()}

    def list_files(self) -> list[RawFile]:
        """List the pipeline's raw, windows first, in order of time; skip files of other names."""
        windows = [file for file in self.list_window_files() if not file.is_compacted]
        days = self.list_quarantine_days().items()
        return windows + [RawFile(self.layout.quarantine_file(day), n, quarantine_day=day) for day, n in days]

    def holds_raw(self) -> bool:
        """Return whether the pipeline's folder holds any text or compacted file of a window, or quarantine."""
        files = (length and (name.endswith(COMPACTED) or _parse_start(day, name)) for day, name, length in
                 self._list_day_folders())  # fmt: skip
        return any(files) or bool(self.list_quarantine_days())

    def count_by_day(self) -> dict[date, int]:
        """Return the number of files in each day's folder."""
        days = ((_parse_day(f"{name}.log"), number) for name, number in self._store.count_files(self._root).items())
        return {day: number for day, number in days if day is not None}

    def list_compacted_files(self) -> list[RawFile]:
        """List the compacted files of windows, in order of time."""
        return [
            RawFile(f"{self._root}/{day.isoformat()}/{name}", length, window_start=start)
            for day, name, length in self._list_day_folders()
            if name.endswith(COMPACTED) and (start := _parse_start(day, f"{name.partition('.')[0]}.log")) is not None
        ]

    def list_window_files(self, start: datetime | None = None, end: datetime | None = None) -> list[RawFile]:
        """List the files of the windows from `start` to before `end` (None: unbounded), text and compacted, in order of
        time; skip files of other names."""
        first = None if start is None else start.astimezone(UTC).date()
        last = None if end is None else end.astimezone(UTC).date()
        files: list[RawFile] = []
        for day, name, length in self._list_day_folders(first, last):
            at = _parse_start(day, f"{name.partition('.')[0]}.log" if name.endswith(COMPACTED) else name)
            if at is not None and length and (start is None or at >= start) and (end is None or at < end):
                files.append(RawFile(f"{self.layout.day_folder(day)}/{name}", length, window_start=at))
        return files

    def _list_day_folders(self, first: date | None = None, last: date | None = None) -> Iterator[tuple[date, str, int]]:
        """Yield every file in the folders of days, from `first` to `last`, with its bytes, in order."""
        bounds = (first.isoformat() if first else _FIRST_DAY, last.isoformat() if last else _LAST_DAY)
        for folder, name, length in self._store.walk(self._root, *bounds):
            if (day := _parse_day(f"{folder}.log")) is not None:
                yield day, name, length

    def list_quarantine_days(self) -> dict[date, int]:
        """Return the bytes of each day's quarantine file, by day, in order."""
        files = self._store.list_files(f"{self._root}/quarantine")
        return {day: length for name, length in sorted(files) if length and (day := _parse_day(name))}

    def read_window(self, window_start: datetime) -> Iterator[bytes]:
        """Yield the window file in chunks; nothing if it is missing."""
        yield from self._store.read_bytes(self.layout.window_file(window_start))

    def read_bytes(self, path: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes `[start, end)` of a file in chunks; nothing if it is missing or shorter."""
        yield from self._store.read_bytes(path, start, end)

    def read_quarantine(self, day: date) -> Iterator[bytes]:
        """Yield the day's quarantine file in chunks."""
        path = self.layout.quarantine_file(day)
        if (length := self.read_length(path)) is None:
            raise TerminalError(f"{path} on {self.where} is missing; it was moved away since it was listed")
        yield from self._store.read_bytes(path, 0, length)

    def set_aside(self, path: str, number: int) -> None:
        """Move the file, if it exists, to the place where it waits for its deletion."""
        aside = self.layout.aside(path, number)
        if self.read_length(path) is not None and not self._store.move(path, aside):
            raise TerminalError(f"{path} cannot be moved aside: {aside} on {self.where} is taken")

    def bar_aside(self, path: str, number: int) -> bool:
        """Put an empty file where `set_aside` would move the file, so that a paused process cannot move it any more;
        return False if a file is there already."""
        try:
            self._store.create(self.layout.aside(path, number), b"")
        except BusyError:
            return False
        return True

    def bring_back(self, path: str, number: int) -> None:
        """Move the file back that `set_aside` moved; append it to a file that has taken its place since."""
        aside = self.layout.aside(path, number)
        if self._store.move(aside, path):
            return
        result = self._store.append(path, self._store.read_bytes(aside))
        if not result.proved:
            raise UnknownOutcomeError(f"{aside} may not be whole in {path}; the next try appends it again")
        self._store.remove(aside)

    def delete_aside(self, path: str, number: int) -> None:
        """Delete the file that `set_aside` moved, if it exists."""
        self._store.remove(self.layout.aside(path, number))

    def place(self, source: str, window_start: datetime, digest: Digest) -> None:
        """Move a compacted file to its window, replacing any there, with the replication of the window's text."""
        path = self.layout.compacted_file(window_start, digest)
        self._store.copy_settings(self.layout.window_file(window_start), source)
        self._store.remove(path)
        if not self._store.move(source, path):
            raise TerminalError(f"{source} cannot be moved: {path} on {self.where} is taken")

    def clear_compacting(self) -> None:
        """Delete the folder of unfinished compactions."""
        self._store.remove_folder(self.layout.compacting)

    def check(self) -> None:
        """Raise UnreachableError unless the store answers and takes writes."""
        self._store.check(self._root)

    @property
    def _root(self) -> str:
        return f"{self.layout.raw_root}/{self.layout.pipeline}"


def _parse_day(name: str) -> date | None:
    """Return the day of a quarantine file, None for a name of another kind."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.log", name) is None:  # ISO 8601 has other forms of the same day
        return None
    try:
        return date.fromisoformat(name.removesuffix(".log"))
    except ValueError:
        return None


def _parse_start(day: date, name: str) -> datetime | None:
    """Return the start of a window from its file's name, None for a name of another kind."""
    if re.fullmatch(r"([01][0-9]|2[0-3])[0-5][0-9]\.log", name) is None:
        return None
    return datetime.combine(day, time(int(name[:2]), int(name[2:4]), tzinfo=UTC))
