"""A file on HDFS read by a task from its DataNodes. What they do not give is read over WebHDFS, which says why."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from hdfs_native import Client

from onceover.raw.native_client import NativeClient
from onceover.raw.store import Reading

_PART = 1 << 20  # bytes that are received within one deadline


class NativeReading:
    """A `Reading`. `open_other` opens the file in another way, from a byte on: the library reads no block that a writer
    has open, and of one that no DataNode gives it does not say where it should be."""

    def __init__(
        self, client: NativeClient, path: str, at: int, end: int, open_other: Callable[[int], Reading]
    ) -> None:
        self._client, self._path, self._at, self._end = client, path, at, end
        self._open_other = open_other
        self._other: Reading | None = None
        self._stream: Iterator[bytes] | None = None
        self._received: deque[memoryview] = deque()

    def fill(self, view: memoryview) -> None:
        """See Reading."""
        while view and self._other is None:
            if not self._received:
                try:
                    self._received += self._client.call(self._receive)
                except (OSError, RuntimeError, EOFError):
                    self._other = self._open_other(self._at)
                    break
            piece = self._received.popleft()
            used = min(len(piece), len(view))
            view[:used] = piece[:used]
            if used < len(piece):
                self._received.appendleft(piece[used:])
            view, self._at = view[used:], self._at + used
        if view and self._other is not None:
            self._other.fill(view)

    def close(self) -> None:
        """See Reading."""
        self._stream = None
        if self._other is not None:
            self._other.close()

    def _receive(self, client: Client) -> list[memoryview]:
        # In a thread that may be given up: it writes nowhere.
        if self._stream is None:
            reader = client.read(self._path)
            if len(reader) < self._end:
                raise EOFError
            self._stream = reader.read_range_stream(self._at, self._end - self._at)
        pieces, size = list[memoryview](), 0
        while size < _PART and (piece := next(self._stream, None)) is not None:
            pieces.append(memoryview(piece))
            size += len(piece)
        if not pieces:
            raise EOFError
        return pieces
