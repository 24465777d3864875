"""Raw on HDFS over WebHDFS: the one way to append to a file, its lengths and listing, and what a lost block leaves.

An append is sent once. If its outcome is unknown, the attempt fails, the batch is replayed, and a repair deduplicates
by ID.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from urllib.parse import quote

import requests
from hdfs import HdfsError

from onceover.errors import TerminalError, UnknownOutcomeError, UnreachableError
from onceover.raw.hdfs import (
    FILE_MODE,
    FOLDER_MODE,
    PREFIX,
    SmallFiles,
    get_exception_name,
    list_folder,
    take_first_line,
    translate_error,
    wrap_errors,
)
from onceover.raw.hdfs_reading import HdfsReading
from onceover.raw.store import AppendResult, Buffer, HasCopy, LeaseHeldError, Reading

_CHUNK = 1 << 20
LEASE_HELD = ("AlreadyBeingCreatedException", "RecoveryInProgressException")
_BEAN = "Hadoop:service=NameNode,name=FSNamesystemState"
_REPLICATED = "REPLICATION"


class HdfsStore(SmallFiles):
    """A `RawStore`: files of one HDFS, read and written as the user that `connect_hdfs` logs in."""

    where = "HDFS"

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        """See RawStore."""
        before = self.read_length(path)
        sent = 0

        def counted() -> Iterator[Buffer]:
            nonlocal sent
            for chunk in chunks:
                sent += len(chunk)
                yield chunk

        try:
            if before is None:
                self._client.write(path, data=counted(), overwrite=False, permission=FILE_MODE)
            else:
                self._client.write(path, data=counted(), append=True)
        except (HdfsError, requests.RequestException) as error:
            detail = take_first_line(error)
            if any(name in str(error) or name in get_exception_name(error) for name in LEASE_HELD):
                # The DataNode reports this if it could not open the file: no byte was written.
                raise LeaseHeldError(path, detail) from error
            if not sent or "AccessControlException" in get_exception_name(error):  # which opens nothing
                raise translate_error(self._address, error) from error
            raise UnknownOutcomeError(
                f"append of {sent} bytes to {path} ended in {detail}: its outcome is unknown, so the batch "
                "is read again"
            ) from error
        start = before or 0
        return AppendResult(start, start + sent, self.read_length(path) == start + sent)

    def read_lengths(self, paths: Iterable[str]) -> dict[str, int]:
        """See RawStore. Lists each folder once."""
        requested = set(paths)
        return {
            path: length
            for folder in sorted({path.rpartition("/")[0] for path in requested})
            for name, length in self.list_files(folder)
            if (path := f"{folder}/{name}") in requested
        }

    def list_files(self, folder: str) -> list[tuple[str, int]]:
        """See RawStore."""
        return list_folder(self._client, self._address, folder)

    def walk(self, root: str, first: str, last: str) -> Iterator[tuple[str, str, int]]:
        """See RawStore."""
        for folder, _ in sorted(self.list_files(root)):
            if first <= folder <= last:
                for name, length in sorted(self.list_files(f"{root}/{folder}")):
                    yield folder, name, length

    def count_files(self, root: str) -> dict[str, int]:
        """See RawStore."""
        with wrap_errors(self._address):
            statuses = self._client.list(root, status=True) if self._read_status(root) else []
        return {name: int(status["childrenNum"]) for name, status in statuses}

    def read_bytes(self, path: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """See RawStore."""
        length = self.read_length(path) or 0
        end = length if end is None else end
        if length >= end > start:
            with (
                wrap_errors(self._address),
                self._client.read(path, offset=start, length=end - start, chunk_size=_CHUNK) as chunks,
            ):
                yield from chunks

    def open(self, path: str, start: int, end: int) -> Reading:
        """See RawStore."""
        return HdfsReading(self, self._address, path, start, end)

    def remove(self, path: str) -> bool:
        """See RawStore."""
        existed = super().remove(path)
        self._remove_if_empty(path.rpartition("/")[0])
        return existed

    def remove_folder(self, folder: str) -> None:
        """See RawStore."""
        with wrap_errors(self._address):
            self._client.delete(folder, recursive=True)

    def move(self, source: str, target: str) -> bool:
        """See RawStore."""
        with wrap_errors(self._address):
            if self._read_status(target) is not None:
                return False
            self._client.makedirs(target.rpartition("/")[0], FOLDER_MODE)
            try:
                self._client.rename(source, target)
            except HdfsError:
                if self._client.status(target, strict=False) is None:
                    raise
                return False  # another process was first
        self._remove_if_empty(source.rpartition("/")[0])
        return True

    def copy_settings(self, source: str, target: str) -> None:
        """See RawStore."""
        with wrap_errors(self._address):
            self._client.set_replication(target, self._client.status(source)["replication"])

    def read_intact(self, path: str, has_copy: HasCopy) -> Iterator[bytes | None]:
        """See RawStore."""
        status = self._read_status(path)
        length, block = (0, 1) if status is None else (int(status["length"]), int(status["blockSize"]))
        for start in range(0, length, block):
            try:
                with self._client.read(
                    path, offset=start, length=min(block, length - start), chunk_size=_CHUNK
                ) as chunks:
                    yield from chunks
            except (HdfsError, requests.RequestException):
                self.require_servers(path)
                if has_copy(path, start):
                    raise UnreachableError(
                        f"HDFS lists a copy of the block at {start} of {path}, but it cannot be read; a DataNode may "
                        "be starting: run the command again. If all of them run, `hdfs fsck` says where the copies "
                        "are; to give them up, move the file away by hand and run the command again"
                    ) from None
                yield None

    def require_servers(self, path: str) -> None:
        """See RawStore."""
        with wrap_errors(self._address):
            state = self.get("/jmx", qry=_BEAN).json()["beans"][0]
        away = state["NumDeadDataNodes"] - state["NumDecomDeadDataNodes"] + state["NumStaleDataNodes"]
        if away:
            raise UnreachableError(
                f"{path} cannot be read, and {away} DataNodes of HDFS do not answer, which may hold what is missing; "
                "start them, or decommission them, then run the command again"
            )

    def was_written_since(self, path: str, moment: datetime) -> bool:
        """See RawStore."""
        status = self._read_status(path)
        return status is not None and int(status["modificationTime"]) > moment.timestamp() * 1000

    def check(self, folder: str) -> None:
        """See RawStore."""
        with wrap_errors(self._address):
            self._client.makedirs(folder, FOLDER_MODE)
        self.require_usable(folder)

    def require_usable(self, folder: str) -> None:
        """Raise AccessDeniedError if this user may not list an existing folder, and TerminalError if its files would be
        erasure-coded."""
        status = self._read_status(folder)
        if status is None:
            return
        if (policy := str(status.get("ecPolicy") or _REPLICATED)).upper() != _REPLICATED:
            raise TerminalError(
                f"{folder} on HDFS is erasure-coded ({policy}), and HDFS appends to no such file: each window's file "
                f"would take its first batch only. Take another raw_root, or set `hdfs ec -setPolicy -replicate -path "
                f"{folder}` before the first record"
            )
        with wrap_errors(self._address):
            self.get(f"{PREFIX}{quote(folder)}", op="CHECKACCESS", fsaction="r-x")

    def _remove_if_empty(self, folder: str) -> None:
        with suppress(HdfsError, requests.RequestException):  # another process may have put a file there just now
            self._client.delete(folder, recursive=False)
