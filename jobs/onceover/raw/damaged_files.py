"""Window files with unreadable blocks: replaced by what can still be read of them, and kept.

No writer can append to a file whose last block has no intact copy, and no reader gets past a block without one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import requests
from hdfs import HdfsError

from onceover.raw.hdfs import connect_hdfs, wrap_errors
from onceover.raw.layout import Layout

_CHUNK = 1 << 20


class DamagedFiles:
    """One pipeline's damaged files over WebHDFS, for the pipeline's driver: no other process may append meanwhile."""

    def __init__(self, address: str, layout: Layout) -> None:
        self._address, self._layout = address, layout
        self._client = connect_hdfs(address)

    def replace(self, path: str) -> str | None:
        """Put a file with the readable bytes in place of the damaged one; return the path where that one is kept, None
        for a file that is missing. If killed, the next call continues."""
        damaged = self._layout.damaged(path)
        readable, kept = f"{damaged}.readable", f"{damaged}.{time.time_ns() // 1_000_000}"
        with wrap_errors(self._address):
            status = self._client.status(path, strict=False)
            if status is None:
                if self._client.status(readable, strict=False):
                    self._client.rename(readable, path)
                return None
            blocks = self._read_blocks(path, int(status["length"]), int(status["blockSize"]))
            self._client.write(readable, data=blocks, overwrite=True, replication=int(status["replication"]))
            self._client.rename(path, kept)
            self._client.rename(readable, path)
        return kept

    def _read_blocks(self, path: str, length: int, block: int) -> Iterator[bytes]:
        """Yield what can be read of each block; a line end after each, so that a torn line takes no other with it."""
        for start in range(0, length, block):
            try:
                with self._client.read(
                    path, offset=start, length=min(block, length - start), chunk_size=_CHUNK
                ) as chunks:
                    yield from chunks
            except (HdfsError, requests.RequestException):
                yield b"\n"
