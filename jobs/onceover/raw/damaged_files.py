"""Window files with unreadable blocks: replaced by what can still be read of them, and kept.

No writer can append to a file whose last block has no intact copy, and no reader gets past a block without one.

readable bytes to a scratch file -> complete, `.readable` -> the damaged file moves aside -> `.readable` takes its place
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import requests
from hdfs import HdfsError

from onceover.errors import BusyError, UnknownOutcomeError, UnreachableError
from onceover.raw.hdfs import connect_hdfs, list_folder, wrap_errors
from onceover.raw.layout import Layout
from onceover.raw.window_files import WindowFiles

_CHUNK = 1 << 20
_READABLE = ".readable"
_SCRATCH = ".part"
_BEAN = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
_TIMEOUT = (5.0, 30.0)
HasCopy = Callable[[str, int], bool]
"""Whether the NameNode knows an intact copy of the file's block at that offset."""


class DamagedFiles:
    """One pipeline's damaged files over WebHDFS, for the pipeline's driver: no other process may append meanwhile.

    `beat` raises FencedError once another process is the driver.
    """

    def __init__(self, address: str, layout: Layout, beat: Callable[[], None] = lambda: None) -> None:
        self._address, self._layout, self._beat = address, layout, beat
        self._client = connect_hdfs(address)
        self._files = WindowFiles(address, layout)

    def replace(self, path: str, has_copy: HasCopy) -> str | None:
        """Put a file with the readable bytes in place of the damaged one; return the path where that one is kept, None
        for a file that is missing, or whole after all. If killed, `finish` continues.

        Raise UnreachableError, and change nothing, while the unreadable bytes may come back with a DataNode.
        """
        with wrap_errors(self._address):
            status = self._client.status(path, strict=False)
            kept = None if status is None else self._replace(path, status, has_copy)
        self.finish(path)
        return kept

    def finish(self, path: str) -> None:
        """Bring back the readable parts of the file that a killed replacement has left. One takes the place of a
        missing file; else its lines are appended, as repairs count each ID once."""
        for readable in self.list_unfinished(path):
            with wrap_errors(self._address):
                self._beat()
                if self._client.status(path, strict=False) is None:
                    self._client.makedirs(path.rpartition("/")[0])
                    self._client.rename(readable, path)
                    continue
                with self._client.read(readable, chunk_size=_CHUNK) as chunks:
                    result = self._files.append(path, _after_line_end(chunks))
                if not result.proved:
                    raise UnknownOutcomeError(f"{readable} may not be whole in {path}; the next try appends it again")
                self._client.delete(readable)

    def list_unfinished(self, path: str) -> list[str]:
        """Return the paths of complete readable parts that wait to be brought back to that file, oldest first."""
        folder, _, name = self._layout.damaged(path).rpartition("/")
        names = (each for each, _ in list_folder(self._client, self._address, folder))
        return sorted(f"{folder}/{each}" for each in names if each.startswith(f"{name}.") and each.endswith(_READABLE))

    def was_written_since(self, path: str, moment: datetime) -> bool:
        """Return whether the file was written or replaced after that moment, by the NameNode's clock."""
        with wrap_errors(self._address):
            status = self._client.status(path, strict=False)
        return status is not None and int(status["modificationTime"]) > moment.timestamp() * 1000

    def set_aside(self, path: str) -> str | None:
        """Move a file away that cannot be read, or holds other records than its name says; return where it is kept,
        None if it is missing. Raise UnreachableError while DataNodes are down."""
        with wrap_errors(self._address):
            if self._client.status(path, strict=False) is None:
                return None
            self.require_datanodes(path)
            kept = self._name_kept(path)
            self._client.makedirs(kept.rpartition("/")[0])
            self._client.rename(path, kept)
        return kept

    def require_datanodes(self, path: str) -> None:
        """Raise UnreachableError while a DataNode is down that may hold blocks of the file."""
        with wrap_errors(self._address):
            client = self._client
            answer = client._session.get(f"{client._urls[0]}{_BEAN}", timeout=_TIMEOUT)  # the one that serves
            answer.raise_for_status()
        state = answer.json()["beans"][0]
        away = state["NumDeadDataNodes"] - state["NumDecomDeadDataNodes"] + state["NumStaleDataNodes"]
        if away:
            raise UnreachableError(
                f"{path} cannot be read, and {away} DataNodes of HDFS do not answer, which may hold what is missing; "
                "start them, or decommission them, then run the command again"
            )

    def _replace(self, path: str, status: dict[str, Any], has_copy: HasCopy) -> str | None:
        kept = self._name_kept(path)
        scratch, readable = f"{kept}{_SCRATCH}", f"{kept}{_READABLE}"
        length, lost, sent = int(status["length"]), 0, 0

        def read_blocks() -> Iterator[bytes]:
            nonlocal lost, sent
            for chunk in self._read_blocks(path, length, int(status["blockSize"]), has_copy):
                lost += chunk is None
                sent += len(chunk or b"\n")
                yield chunk or b"\n"

        try:
            self._client.write(scratch, data=read_blocks(), overwrite=True, replication=int(status["replication"]))
            if not lost:
                return None
            if self._client.status(scratch)["length"] != sent:
                raise UnknownOutcomeError(f"{scratch} is not whole; the next try writes it again")
            if self._files.read_length(path) != length:
                raise BusyError(f"{path} changed while it was read; the next try reads it again")
            self._beat()
            self._client.rename(scratch, readable)
            self._client.rename(path, kept)
        finally:
            with suppress(HdfsError, requests.RequestException):
                self._client.delete(scratch)
        return kept

    def _read_blocks(self, path: str, length: int, block: int, has_copy: HasCopy) -> Iterator[bytes | None]:
        """Yield what can be read of each block, and None at the end of what cannot: for a line end there, so that a
        torn line takes no other with it."""
        for start in range(0, length, block):
            try:
                with self._client.read(
                    path, offset=start, length=min(block, length - start), chunk_size=_CHUNK
                ) as chunks:
                    yield from chunks
            except (HdfsError, requests.RequestException):
                self.require_datanodes(path)
                if has_copy(path, start):
                    raise UnreachableError(
                        f"HDFS lists a copy of the block at {start} of {path}, but it cannot be read; a DataNode may "
                        "be starting: run the command again. If all of them run, `hdfs fsck` says where the copies "
                        "are; to give them up, move the file away by hand and run the command again"
                    ) from None
                yield None

    def _name_kept(self, path: str) -> str:
        return f"{self._layout.damaged(path)}.{time.time_ns() // 1_000_000}"


def _after_line_end(chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield b"\n"
    yield from chunks
