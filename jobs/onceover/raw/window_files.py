"""Window files on HDFS: their lengths, their listing, and the one way to append to them.

An append is sent once. If its outcome is unknown, the attempt fails, the batch is replayed, and a repair deduplicates
by ID.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Protocol

import requests
from hdfs import HdfsError

from onceover.errors import BusyError, UnknownOutcomeError
from onceover.model.digest import Digest
from onceover.model.raw_file import CompactedFile, RawFile
from onceover.raw.hdfs import (
    connect_hdfs,
    get_exception_name,
    list_folder,
    take_first_line,
    translate_error,
    wrap_errors,
)
from onceover.raw.layout import Layout

_CHUNK = 1 << 20
_LEASE_HELD = ("AlreadyBeingCreatedException", "RecoveryInProgressException")


class Buffer(Protocol):
    """Bytes to send, with their number."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The bytes `[start, end)` of one append, and whether the file's length afterwards proves them."""

    start: int
    end: int
    proved: bool


class LeaseHeldError(BusyError):
    """A file at `path` that another writer, perhaps a dead one, holds open."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(
            f"{path} is still open for a writer that may be dead ({detail}); the next try recovers its lease"
        )
        self.path = path


class WindowFiles:
    """One pipeline's files over WebHDFS. Make it in the process that uses it: sessions do not survive a fork."""

    def __init__(self, address: str, layout: Layout) -> None:
        self.layout = layout
        self._address = address
        self._client = connect_hdfs(address)

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        """Append the chunks to the file; create it if missing.

        Raise LeaseHeldError if the file could not be opened, UnknownOutcomeError once bytes may have arrived.
        """
        before = self.read_length(path)
        sent = 0

        def counted() -> Iterator[Buffer]:
            nonlocal sent
            for chunk in chunks:
                sent += len(chunk)
                yield chunk

        try:
            if before is None:
                self._client.write(path, data=counted(), overwrite=False)
            else:
                self._client.write(path, data=counted(), append=True)
        except (HdfsError, requests.RequestException) as error:
            detail = take_first_line(error)
            if any(name in str(error) or name in get_exception_name(error) for name in _LEASE_HELD):
                # The DataNode reports this if it could not open the file: no byte was written.
                raise LeaseHeldError(path, detail) from error
            if not sent:
                raise translate_error(self._address, error) from error
            raise UnknownOutcomeError(
                f"append of {sent} bytes to {path} ended in {detail}: its outcome is unknown, so the batch "
                "is read again"
            ) from error
        start = before or 0
        return AppendResult(start, start + sent, self.read_length(path) == start + sent)

    def read_length(self, path: str) -> int | None:
        """Return the bytes of a file, None if it is missing."""
        with wrap_errors(self._address):
            status = self._client.status(path, strict=False)
        return None if status is None else int(status["length"])

    def read_lengths(self, window_starts: Iterable[datetime]) -> dict[datetime, int]:
        """Return the bytes of each window's existing file; list each day's folder once."""
        starts = {self.layout.window_file(start): start for start in window_starts}
        return {starts[path]: length for path, length in self._read_lengths(starts).items()}

    def find_parquet_files(self, compacted: Mapping[datetime, CompactedFile]) -> dict[datetime, str]:
        """Return the paths of these windows' Parquet files that exist and have the recorded length."""
        paths = {start: self.layout.parquet_file(start, file.digest) for start, file in compacted.items()}
        lengths = self._read_lengths(paths.values())
        return {start: path for start, path in paths.items() if lengths.get(path) == compacted[start].bytes}

    def read_parquet_lengths(self, digests: Mapping[datetime, Digest]) -> dict[datetime, int]:
        """Return the bytes of each existing Parquet file that is named for a window and the digest of its records."""
        paths = {self.layout.parquet_file(start, digest): start for start, digest in digests.items()}
        return {paths[path]: length for path, length in self._read_lengths(paths).items()}

    def _read_lengths(self, paths: Iterable[str]) -> dict[str, int]:
        requested = set(paths)
        return {
            path: length
            for folder in sorted({path.rpartition("/")[0] for path in requested})
            for name, length in list_folder(self._client, self._address, folder)
            if (path := f"{folder}/{name}") in requested
        }

    def list_files(self) -> list[RawFile]:
        """List the pipeline's raw, windows first, in order of time; skip files of other names."""
        windows = [
            RawFile(self.layout.window_file(start), length, window_start=start)
            for day, name, length in self._list_day_folders()
            if length and (start := _parse_start(day, name)) is not None
        ]
        days = self.list_quarantine_days().items()
        return windows + [RawFile(self.layout.quarantine_file(day), n, quarantine_day=day) for day, n in days]

    def holds_raw(self) -> bool:
        """Return whether the pipeline's folder holds any text or Parquet file of a window, or quarantine."""
        files = (length and (name.endswith(".parquet") or _parse_start(day, name)) for day, name, length in
                 self._list_day_folders())  # fmt: skip
        return any(files) or bool(self.list_quarantine_days())

    def count_by_day(self) -> dict[date, int]:
        """Return the number of files in each day's folder, by one request."""
        root = f"{self.layout.raw_root}/{self.layout.pipeline}"
        with wrap_errors(self._address):
            statuses = self._client.list(root, status=True) if self._client.status(root, strict=False) else []
        days = ((_parse_day(f"{name}.log"), int(status["childrenNum"])) for name, status in statuses)
        return {day: number for day, number in days if day is not None}

    def list_parquet_files(self) -> list[RawFile]:
        """List the Parquet files of windows, in order of time."""
        root = f"{self.layout.raw_root}/{self.layout.pipeline}"
        return [
            RawFile(f"{root}/{day.isoformat()}/{name}", length, window_start=start)
            for day, name, length in self._list_day_folders()
            if name.endswith(".parquet") and (start := _parse_start(day, f"{name.partition('.')[0]}.log")) is not None
        ]

    def list_window_files(self, start: datetime | None = None, end: datetime | None = None) -> list[RawFile]:
        """List the files of the windows from `start` to before `end` (None: unbounded), lines and Parquet, in order of
        time; skip files of other names."""
        first = None if start is None else start.astimezone(UTC).date()
        last = None if end is None else end.astimezone(UTC).date()
        files: list[RawFile] = []
        for day, name, length in self._list_day_folders(first, last):
            at = _parse_start(day, f"{name.partition('.')[0]}.log") if name.endswith((".log", ".parquet")) else None
            if at is not None and length and (start is None or at >= start) and (end is None or at < end):
                files.append(RawFile(f"{self.layout.day_folder(day)}/{name}", length, window_start=at))
        return files

    def _list_day_folders(self, first: date | None = None, last: date | None = None) -> Iterator[tuple[date, str, int]]:
        """Yield every file in the folders of days, from `first` to `last`, with its bytes, in order."""
        root = f"{self.layout.raw_root}/{self.layout.pipeline}"
        for folder, _ in sorted(list_folder(self._client, self._address, root)):
            day = _parse_day(f"{folder}.log")
            if day is not None and (first is None or day >= first) and (last is None or day <= last):
                for name, length in sorted(list_folder(self._client, self._address, f"{root}/{folder}")):
                    yield day, name, length

    def list_quarantine_files(self) -> list[str]:
        """List the paths of the days' quarantine files."""
        return [self.layout.quarantine_file(day) for day in self.list_quarantine_days()]

    def list_quarantine_days(self) -> dict[date, int]:
        """Return the bytes of each day's quarantine file, by day, in order."""
        files = list_folder(self._client, self._address, f"{self.layout.raw_root}/{self.layout.pipeline}/quarantine")
        return {day: length for name, length in sorted(files) if length and (day := _parse_day(name))}

    def read_window(self, window_start: datetime) -> Iterator[bytes]:
        """Yield the window file in chunks; nothing if it is missing."""
        path = self.layout.window_file(window_start)
        if self.read_length(path) is not None:
            with wrap_errors(self._address), self._client.read(path, chunk_size=_CHUNK) as chunks:
                yield from chunks

    def read_bytes(self, path: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes `[start, end)` of a file in chunks; nothing if it is missing or shorter."""
        if (self.read_length(path) or 0) >= end > start:
            with (
                wrap_errors(self._address),
                self._client.read(path, offset=start, length=end - start, chunk_size=_CHUNK) as chunks,
            ):
                yield from chunks

    def read_quarantine(self, day: date) -> Iterator[bytes]:
        """Yield the day's quarantine file in chunks."""
        path = self.layout.quarantine_file(day)
        with wrap_errors(self._address), self._client.read(path, chunk_size=_CHUNK) as chunks:
            yield from chunks

    def set_aside(self, path: str, number: int) -> None:
        """Move the file, if it exists, to the place where it waits for its deletion."""
        aside = self.layout.aside(path, number)
        with wrap_errors(self._address):
            if self._client.status(path, strict=False) is None:
                return
            self._client.makedirs(aside.rpartition("/")[0])
            self._client.rename(path, aside)
            self._remove_if_empty(path.rpartition("/")[0])

    def bar_aside(self, path: str, number: int) -> bool:
        """Put an empty file where `set_aside` would move the file, so that a paused process cannot move it any more;
        return False if a file is there already."""
        aside = self.layout.aside(path, number)
        with wrap_errors(self._address):
            try:
                self._client.write(aside, data=b"", overwrite=False)
            except HdfsError:
                if self._client.status(aside, strict=False) is None:
                    raise
                return False
        return True

    def bring_back(self, path: str, number: int) -> None:
        """Move the file back that `set_aside` moved; append it to a file that has taken its place since."""
        aside = self.layout.aside(path, number)
        with wrap_errors(self._address):
            if self._client.status(path, strict=False) is None:
                self._client.makedirs(path.rpartition("/")[0])
                self._client.rename(aside, path)
                return
            with self._client.read(aside, chunk_size=_CHUNK) as chunks:
                result = self.append(path, chunks)
            if not result.proved:
                raise UnknownOutcomeError(f"{aside} may not be whole in {path}; the next try appends it again")
            self._client.delete(aside)

    def delete_aside(self, path: str, number: int) -> None:
        """Delete the file that `set_aside` moved, if it exists."""
        aside = self.layout.aside(path, number)
        with wrap_errors(self._address):
            self._client.delete(aside)
            self._remove_if_empty(aside.rpartition("/")[0])

    def place(self, source: str, window_start: datetime, digest: Digest) -> None:
        """Move a Parquet file to its window, replacing any there, with the replication of the window's text."""
        path = self.layout.parquet_file(window_start, digest)
        with wrap_errors(self._address):
            copies = self._client.status(self.layout.window_file(window_start))["replication"]
            self._client.set_replication(source, copies)
            self._client.delete(path)
            self._client.rename(source, path)

    def clear_compacting(self) -> None:
        """Delete the folder of unfinished compactions."""
        with wrap_errors(self._address):
            self._client.delete(self.layout.compacting, recursive=True)

    def _remove_if_empty(self, folder: str) -> None:
        with suppress(HdfsError):  # another process may have put a file there just now
            self._client.delete(folder, recursive=False)

    def check(self) -> None:
        """Raise UnreachableError unless the NameNode answers and takes writes."""
        with wrap_errors(self._address):
            self._client.makedirs(f"{self.layout.raw_root}/{self.layout.pipeline}")


def _parse_day(name: str) -> date | None:
    """Return the day of a quarantine file, None for a name of another kind."""
    try:
        return date.fromisoformat(name.removesuffix(".log")) if name.endswith(".log") else None
    except ValueError:
        return None


def _parse_start(day: date, name: str) -> datetime | None:
    """Return the start of a window from its file's name, None for a name of another kind."""
    if re.fullmatch(r"([01][0-9]|2[0-3])[0-5][0-9]\.log", name) is None:
        return None
    return datetime.combine(day, time(int(name[:2]), int(name[2:4]), tzinfo=UTC))
