"""Window files of which bytes are lost: replaced by what can still be read of them, and kept.

No reader gets past bytes that are lost, and on HDFS no writer can append behind them.

readable bytes to a scratch file -> complete, `.readable` -> the damaged file moves aside -> `.readable` takes its place
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime

from onceover.errors import BusyError, OnceoverError, UnknownOutcomeError
from onceover.raw.layout import Layout
from onceover.raw.store import HasCopy, open_store

_READABLE = ".readable"
_SCRATCH = ".part"


class DamagedFiles:
    """One pipeline's damaged files, for the pipeline's driver: no other process may append meanwhile.

    `beat` raises FencedError once another process is the driver.
    """

    def __init__(self, address: str, layout: Layout, beat: Callable[[], None] = lambda: None) -> None:
        self.store = open_store(address)
        self._layout, self._beat = layout, beat

    def replace(self, path: str, has_copy: HasCopy) -> str | None:
        """Put a file with the readable bytes in place of the damaged one; return the path where that one is kept, None
        for a file that is missing, or whole after all. If killed, `finish` continues.

        Raise UnreachableError, and change nothing, while the unreadable bytes may come back with a server.
        """
        length = self.store.read_length(path)
        kept = None if length is None else self._replace(path, length, has_copy)
        self.finish(path)
        return kept

    def finish(self, path: str) -> None:
        """Bring back the readable parts of the file that a killed replacement has left. One takes the place of a
        missing file; else its lines are appended, as repairs count each ID once."""
        for readable in self.list_unfinished(path):
            self._beat()
            if self.store.move(readable, path):
                continue
            result = self.store.append(path, _after_line_end(self.store.read_bytes(readable)))
            if not result.proved:
                raise UnknownOutcomeError(f"{readable} may not be whole in {path}; the next try appends it again")
            self.store.remove(readable)

    def list_unfinished(self, path: str) -> list[str]:
        """Return the paths of complete readable parts that wait to be brought back to that file, oldest first."""
        folder, _, name = self._layout.damaged(path).rpartition("/")
        names = (each for each, _ in self.store.list_files(folder))
        return sorted(f"{folder}/{each}" for each in names if each.startswith(f"{name}.") and each.endswith(_READABLE))

    def was_written_since(self, path: str, moment: datetime) -> bool:
        """Return whether the file was written or replaced after that moment, by the servers' clock."""
        return self.store.was_written_since(path, moment)

    def set_aside(self, path: str) -> str | None:
        """Move a file away that cannot be read, or holds other records than its name says; return where it is kept,
        None if it is missing. Raise UnreachableError while servers are down."""
        if self.store.read_length(path) is None:
            return None
        self.store.require_servers(path)
        kept = self._name_kept(path)
        self._move(path, kept)
        return kept

    def require_servers(self, path: str) -> None:
        """Raise UnreachableError while a server is down that may hold bytes of the file."""
        self.store.require_servers(path)

    def _replace(self, path: str, length: int, has_copy: HasCopy) -> str | None:
        kept = self._name_kept(path)
        scratch, readable = f"{kept}{_SCRATCH}", f"{kept}{_READABLE}"
        lost, sent = 0, 0

        def read_blocks() -> Iterator[bytes]:
            nonlocal lost, sent
            for chunk in self.store.read_intact(path, has_copy):
                lost += chunk is None
                sent += len(chunk or b"\n")
                yield chunk or b"\n"  # a line end there, so that a torn line takes no other with it

        try:
            self.store.append(scratch, read_blocks())
            if not lost:
                return None
            self.store.copy_settings(path, scratch)
            if self.store.read_length(scratch) != sent:
                raise UnknownOutcomeError(f"{scratch} is not whole; the next try writes it again")
            if self.store.read_length(path) != length:
                raise BusyError(f"{path} changed while it was read; the next try reads it again")
            self._beat()
            self._move(scratch, readable)
            self._move(path, kept)
        finally:
            with suppress(OnceoverError):
                self.store.remove(scratch)
        return kept

    def _move(self, source: str, target: str) -> None:
        if not self.store.move(source, target):
            raise BusyError(f"{source} cannot be moved: {target} on {self.store.where} is taken; run the command again")

    def _name_kept(self, path: str) -> str:
        return f"{self._layout.damaged(path)}.{time.time_ns() // 1_000_000}"


def _after_line_end(chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield b"\n"
    yield from chunks
