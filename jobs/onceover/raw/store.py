"""The store of raw: append-only files by absolute path, on HDFS, on HBase, or on what a plug-in names.

Only this package knows which one a pipeline has. `open_store` takes the address that `PipelineContext.raw_address`
gives. docs/raw-stores.md says how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Protocol, cast

from onceover.config.raw_stores import VARIABLE, list_raw_stores
from onceover.errors import BusyError, ConfigurationError

HasCopy = Callable[[str, int], bool]
"""Whether the servers know an intact copy of the file's bytes at that offset."""


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


class Reading(Protocol):
    """The bytes `[at, end)` of a file, one after the other."""

    def fill(self, view: memoryview) -> None:
        """Fill the view with the next bytes. Raise UnreachableError, or TerminalError if the file is missing, shorter
        or has a gap; both name the file."""

    def close(self) -> None:
        """Close the connection; twice does nothing."""


class RawStore(Protocol):
    """Files of one store. Make it in the process that uses it: sessions do not survive a fork.

    All methods raise UnreachableError if the servers do not answer, TerminalError if they refuse.
    """

    where: str
    """The store's name in messages."""

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        """Append the chunks to the file; create it if missing. An append is sent once.

        Raise LeaseHeldError or BusyError if another writer is at the file, UnknownOutcomeError once bytes may have
        arrived. What arrived stays, at the file's end.
        """

    def read_length(self, path: str) -> int | None:
        """Return the bytes of a file, None if it is missing."""

    def read_lengths(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the bytes of those of these files that exist, with few requests."""

    def list_files(self, folder: str) -> list[tuple[str, int]]:
        """List the name and length of each file in the folder, in no order; none if the folder is missing."""

    def walk(self, root: str, first: str, last: str) -> Iterator[tuple[str, str, int]]:
        """Yield folder, name and length of each file of the folders `root/first` to `root/last`, by their names, in
        order. Files deeper down are left out."""

    def count_files(self, root: str) -> dict[str, int]:
        """Return the number of files in each folder of `root`, cheaply."""

    def read_bytes(self, path: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes `[start, end)` of a file in chunks, to its end by default; nothing if it is missing or
        shorter."""

    def open(self, path: str, start: int, end: int) -> Reading:
        """Return a reader of the bytes `[start, end)`; it asks the servers when it is used."""

    def read(self, path: str) -> bytes | None:
        """Return a small file's content, None if the file is missing."""

    def create(self, path: str, content: bytes) -> None:
        """Create a small file, whole or not at all. Raise BusyError if the name is taken."""

    def remove(self, path: str) -> bool:
        """Delete the file; return whether it existed."""

    def remove_folder(self, folder: str) -> None:
        """Delete the folder with all files below it."""

    def move(self, source: str, target: str) -> bool:
        """Move the file at once, as far as any reader can see; return False, and move nothing, if another file has the
        target's name. Raise TerminalError for a missing file, BusyError if another process changes it."""

    def copy_settings(self, source: str, target: str) -> None:
        """Keep as many copies of the target as of the source."""

    def read_intact(self, path: str, has_copy: HasCopy) -> Iterator[bytes | None]:
        """Yield what can be read of the file, and None at each place where bytes are lost. Raise UnreachableError while
        they may come back."""

    def require_servers(self, path: str) -> None:
        """Raise UnreachableError while a server is down that may hold bytes of the file."""

    def was_written_since(self, path: str, moment: datetime) -> bool:
        """Return whether the file was written or replaced after that moment, by the servers' clock."""

    def check(self, folder: str) -> None:
        """Raise UnreachableError unless the servers answer and take writes; make the folder."""


def make_address(name: str, server: str) -> str:
    """Return the address of a store as `open_store` takes it: those of HDFS as they are, any other with its name
    before."""
    return server if name == "hdfs" else f"{name}://{server}"


def open_store(address: str) -> RawStore:
    """Return the store at the address, not connected yet. Raise ConfigurationError for an unknown kind of store."""
    scheme, _, server = address.partition("://")
    if scheme in ("http", "https", "hdfs"):
        scheme, server = "hdfs", address
    classes = list_raw_stores()
    if scheme not in classes:
        raise ConfigurationError(f"{address!r} is not the address of a raw store ({', '.join(classes)})")
    module, _, name = classes[scheme].partition(":")
    try:
        opener = cast("Callable[[str], RawStore]", getattr(import_module(module), name))
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"{VARIABLE}: {classes[scheme]} cannot be imported: {error}") from error
    return opener(server)
