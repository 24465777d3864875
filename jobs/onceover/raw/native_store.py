"""Raw on HDFS by its own protocol: appends, reads, lengths, listings and renames in a fraction of WebHDFS's time.

WebHDFS stays for new files, since the library sleeps half a second whenever it closes a new block, for appends while a
copy is lacking, and for what its API does not have: rights, erasure coding, DataNodes that are down, and blocks that
cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from urllib.parse import quote

from hdfs_native import FileStatus

from onceover.errors import (
    AccessDeniedError,
    ConfigurationError,
    OnceoverError,
    TerminalError,
    UnknownOutcomeError,
    UnreachableError,
)
from onceover.raw.hdfs import FOLDER_MODE, PREFIX, wrap_errors
from onceover.raw.hdfs_store import LEASE_HELD, HdfsStore
from onceover.raw.native_client import NativeClient, read_message
from onceover.raw.native_reading import NativeReading
from onceover.raw.store import AppendResult, Buffer, LeaseHeldError, Reading

_CHUNK = 1 << 20


def open_hdfs(address: str) -> HdfsStore:
    """Return the store at WebHDFS's address, or at `hdfs://HOST;WEBHDFS`, not connected yet."""
    host, _, webhdfs = address.partition(";")
    return NativeStore(host, webhdfs) if host.startswith("hdfs://") else HdfsStore(address)


class NativeStore(HdfsStore):
    """A `RawStore`: files of one HDFS, read and written as the user that `connect_hdfs` logs in."""

    def __init__(self, address: str, webhdfs: str) -> None:
        super().__init__(webhdfs)
        self._native = NativeClient(address)

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        """See RawStore."""
        status = self._find(path)
        if status is None or self._lacks_copy(path, status):
            return super().append(path, chunks)
        native, start, sent = self._native, status.length, 0

        def send(request: Callable[[], object]) -> None:
            try:
                native.call(lambda _: request())
            except (OSError, RuntimeError) as error:
                raise UnknownOutcomeError(
                    f"append of {sent} bytes to {path} ended in {read_message(error)}: its outcome is unknown, so the "
                    "batch is read again"
                ) from error

        try:
            writer = native.call(lambda client: client.append(path))
        except (OSError, RuntimeError) as error:  # no byte was written
            detail = read_message(error)
            if isinstance(error, FileExistsError) or any(name in detail for name in LEASE_HELD):
                raise LeaseHeldError(path, detail) from error
            failure = native.translate(error)
            if isinstance(failure, (UnreachableError, AccessDeniedError)):
                raise failure from error
            raise UnreachableError(f"{path} on HDFS cannot be opened to append ({detail}); no byte was sent") from error
        close = writer.close
        try:
            for chunk in chunks:
                sent += len(chunk)
                # The library takes bytes at once, another buffer's one after the other, Arrow's as signed numbers.
                send(partial(writer.write, bytes(chunk)))  # type: ignore[call-overload]
            send(close)
        except BaseException:
            with suppress(OSError, RuntimeError):  # what arrived stays
                native.call(lambda _: close())
            raise
        finally:
            # Python calls it once more where it drops the writer, without a deadline.
            writer.close = lambda: None  # type: ignore[method-assign]
        return AppendResult(start, start + sent, self.read_length(path) == start + sent)

    def read_length(self, path: str) -> int | None:
        """See RawStore."""
        status = self._find(path)
        return None if status is None else status.length

    def list_files(self, folder: str) -> list[tuple[str, int]]:
        """See RawStore."""
        try:
            statuses = self._native.ask(lambda client: list(client.list_status(folder)))
        except FileNotFoundError:
            return []
        return [(each.path.rpartition("/")[2], each.length) for each in statuses]

    def read(self, path: str) -> bytes | None:
        """See RawStore."""
        length = self.read_length(path)
        if length is None:
            return None
        content = bytearray(length)
        with closing(self.open(path, 0, length)) as reading:
            try:
                reading.fill(memoryview(content))
            except OnceoverError:
                if self.read_length(path) is None:
                    return None
                raise
        return bytes(content)

    def read_bytes(self, path: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """See RawStore."""
        length = self.read_length(path) or 0
        end = length if end is None else end
        if length >= end > start:
            with closing(self.open(path, start, end)) as reading:
                for at in range(start, end, _CHUNK):
                    piece = bytearray(min(_CHUNK, end - at))
                    reading.fill(memoryview(piece))
                    yield bytes(piece)

    def open(self, path: str, start: int, end: int) -> Reading:
        """See RawStore."""
        if self._native.is_silent:
            return super().open(path, start, end)
        return NativeReading(self._native, path, start, end, lambda at: super(NativeStore, self).open(path, at, end))

    def remove(self, path: str) -> bool:
        """See RawStore."""
        existed = self._native.ask(lambda client: client.delete(path, recursive=False))
        self._remove_if_empty(path.rpartition("/")[0])
        return existed

    def remove_folder(self, folder: str) -> None:
        """See RawStore."""
        self._native.ask(lambda client: client.delete(folder, recursive=True))

    def move(self, source: str, target: str) -> bool:
        """See RawStore."""
        if self._find(target) is not None:
            return False
        folder = target.rpartition("/")[0]
        try:
            self._native.ask(lambda client: client.mkdirs(folder, int(FOLDER_MODE, 8), create_parent=True))
            self._native.ask(lambda client: client.rename(source, target))
        except FileExistsError:
            return False  # another process was first
        except FileNotFoundError as error:
            raise TerminalError(f"HDFS has no file {source} to move to {target}: {read_message(error)}") from error
        self._remove_if_empty(source.rpartition("/")[0])
        return True

    def check(self, folder: str) -> None:
        """See RawStore. Raise ConfigurationError if both addresses are not of one HDFS."""
        super().check(folder)
        if self._find(folder) is None:
            raise ConfigurationError(
                f"ONCEOVER_HDFS={self._native.address} and ONCEOVER_WEBHDFS={self._address} are of two HDFS: only the "
                f"second has {folder}; correct one of them"
            )

    def was_written_since(self, path: str, moment: datetime) -> bool:
        """See RawStore."""
        status = self._find(path)
        return status is not None and status.modification_time > moment.timestamp() * 1000

    def _lacks_copy(self, path: str, status: FileStatus) -> bool:
        """Return whether HDFS lacks an intact copy of the file's end, or the file has none yet. The library leaves the
        block's generation stamp as it is: a DataNode that comes back with the copy of before would pass for right, and
        HDFS may cut the file to it. WebHDFS's client takes a new stamp. A DataNode that the NameNode gives up between
        this question and the append is not seen. A server that does not know the question might lack one."""
        end = {"offset": max(status.length - 1, 0), "length": 1}
        try:
            with wrap_errors(self._address):
                found = self.get(f"{PREFIX}{quote(path)}", op="GETFILEBLOCKLOCATIONS", **end).json()
        except TerminalError:
            return True
        blocks = found["BlockLocations"]["BlockLocation"]
        return not blocks or len(blocks[-1]["names"]) < (status.replication or 1)

    def _find(self, path: str) -> FileStatus | None:
        try:
            return self._native.ask(lambda client: client.get_file_info(path))
        except FileNotFoundError:
            return None

    def _remove_if_empty(self, folder: str) -> None:
        with suppress(OnceoverError):  # another process may have put a file there just now
            self._native.ask(lambda client: client.delete(folder, recursive=False))
