"""Window files on HDFS: where they lie, how long they are, and the one way to append to them.

An append is sent once. If nobody can say whether it arrived, the attempt fails, the batch is read again, and the IDs
absorb what is there twice.
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
    """Bytes to send, and how many they are."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What one append did: bytes `[start, end)`, and whether the file's length afterwards proves it."""

    start: int
    end: int
    proved: bool


class LeaseHeldError(BusyError):
    """Somebody else, or a writer that died, has the file open; `path` says which."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path} is still open for a writer that may be dead ({detail}); its lease must be recovered")
        self.path = path


class WindowFiles:
    """One pipeline's files over WebHDFS. Make one where it is used: sessions do not survive a fork."""

    def __init__(self, address: str, layout: Layout) -> None:
        self.layout = layout
        self._address = address
        self._client = connect_hdfs(address)

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        """Append the chunks to the file, creating it if it is not there.

        Raises LeaseHeldError where the file could not be opened, UnknownOutcomeError once bytes may have arrived.
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
                # Said by the DataNode when it could not open the file: what we began to send went nowhere.
                raise LeaseHeldError(path, detail) from error
            if not sent:
                raise translate_error(self._address, error) from error
            raise UnknownOutcomeError(
                f"append of {sent} bytes to {path} ended in {detail}; nobody can say whether it arrived, the batch is "
                "read again"
            ) from error
        start = before or 0
        return AppendResult(start, start + sent, self.read_length(path) == start + sent)

    def read_length(self, path: str) -> int | None:
        """Bytes of a file, None if it is not there."""
        with wrap_errors(self._address):
            status = self._client.status(path, strict=False)
        return None if status is None else int(status["length"])

    def read_lengths(self, window_starts: Iterable[datetime]) -> dict[datetime, int]:
        """Bytes of each window's file that is there; one listing a day."""
        starts = {self.layout.window_file(start): start for start in window_starts}
        return {starts[path]: length for path, length in self._read_lengths(starts).items()}

    def find_parquet_files(self, compacted: Mapping[datetime, CompactedFile]) -> dict[datetime, str]:
        """Paths of those of these windows' Parquet files that are there with the bytes that they had."""
        paths = {start: self.layout.parquet_file(start, one.digest) for start, one in compacted.items()}
        lengths = self._read_lengths(paths.values())
        return {start: path for start, path in paths.items() if lengths.get(path) == compacted[start].bytes}

    def _read_lengths(self, paths: Iterable[str]) -> dict[str, int]:
        wanted = set(paths)
        return {
            path: length
            for folder in sorted({path.rpartition("/")[0] for path in wanted})
            for name, length in list_folder(self._client, self._address, folder)
            if (path := f"{folder}/{name}") in wanted
        }

    def list_files(self) -> list[RawFile]:
        """All of the pipeline's raw, windows first, in the order of time; files of other names are none of ours."""
        found = [
            RawFile(self.layout.window_file(start), length, window_start=start)
            for day, name, length in self._list_day_folders()
            if length and (start := _parse_start(day, name)) is not None
        ]
        of_days = self.list_quarantine_days().items()
        return found + [RawFile(self.layout.quarantine_file(day), n, quarantine_day=day) for day, n in of_days]

    def list_compacted_windows(self) -> list[datetime]:
        """Windows beside whose file, or in whose place, there is a Parquet file, in order."""
        found = {
            start
            for day, name, _ in self._list_day_folders()
            if name.endswith(".parquet") and (start := _parse_start(day, f"{name.partition('.')[0]}.log")) is not None
        }
        return sorted(found)

    def _list_day_folders(self) -> Iterator[tuple[date, str, int]]:
        """Every file in the folders of days, with its bytes, in order."""
        root = f"{self.layout.raw_root}/{self.layout.pipeline}"
        for folder, _ in sorted(list_folder(self._client, self._address, root)):
            if (day := _parse_day(f"{folder}.log")) is not None:
                for name, length in sorted(list_folder(self._client, self._address, f"{root}/{folder}")):
                    yield day, name, length

    def list_quarantine_files(self) -> list[str]:
        """Paths of the days' quarantine files."""
        return [self.layout.quarantine_file(day) for day in self.list_quarantine_days()]

    def list_quarantine_days(self) -> dict[date, int]:
        """Days in their order, with the bytes of their quarantine files."""
        found = list_folder(self._client, self._address, f"{self.layout.raw_root}/{self.layout.pipeline}/quarantine")
        return {day: length for name, length in sorted(found) if length and (day := _parse_day(name))}

    def read_quarantine(self, day: date) -> Iterator[bytes]:
        """The bytes of the day's quarantine file in order, some at a time."""
        path = self.layout.quarantine_file(day)
        with wrap_errors(self._address), self._client.read(path, chunk_size=_CHUNK) as chunks:
            yield from chunks

    def is_aside(self, path: str, number: int) -> bool:
        """Whether `set_aside` was here."""
        return self.read_length(self.layout.aside(path, number)) is not None

    def set_aside(self, path: str, number: int) -> None:
        """Move the file, if there is one, to where it waits for its deletion."""
        aside = self.layout.aside(path, number)
        with wrap_errors(self._address):
            if self._client.status(path, strict=False) is None:
                return
            self._client.makedirs(aside.rpartition("/")[0])
            self._client.rename(path, aside)
            self._remove_if_empty(path.rpartition("/")[0])

    def delete_aside(self, path: str, number: int) -> None:
        """Delete what `set_aside` moved away, if it is there."""
        aside = self.layout.aside(path, number)
        with wrap_errors(self._address):
            self._client.delete(aside)
            self._remove_if_empty(aside.rpartition("/")[0])

    def place(self, source: str, window_start: datetime, digest: Digest) -> None:
        """Move a Parquet file to where it belongs, over whatever is there, to be kept in as many copies as the text."""
        path = self.layout.parquet_file(window_start, digest)
        with wrap_errors(self._address):
            copies = self._client.status(self.layout.window_file(window_start))["replication"]
            self._client.set_replication(source, copies)
            self._client.delete(path)
            self._client.rename(source, path)

    def clear_compacting(self) -> None:
        """Delete what a compaction leaves besides its files."""
        with wrap_errors(self._address):
            self._client.delete(self.layout.compacting, recursive=True)

    def _remove_if_empty(self, folder: str) -> None:
        with suppress(HdfsError):  # it is not: somebody may have put a file there just now
            self._client.delete(folder, recursive=False)

    def check(self) -> None:
        """Raise UnreachableError unless the NameNode answers and takes writes."""
        with wrap_errors(self._address):
            self._client.makedirs(f"{self.layout.raw_root}/{self.layout.pipeline}")


def _parse_day(name: str) -> date | None:
    """The day of a quarantine file; a file of another name is none of ours."""
    try:
        return date.fromisoformat(name.removesuffix(".log")) if name.endswith(".log") else None
    except ValueError:
        return None


def _parse_start(day: date, name: str) -> datetime | None:
    """The start of a window by its file's name; None for a name of another kind."""
    if re.fullmatch(r"([01][0-9]|2[0-3])[0-5][0-9]\.log", name) is None:
        return None
    return datetime.combine(day, time(int(name[:2]), int(name[2:4]), tzinfo=UTC))
