"""Offsets in a local file, `GROUP/TOPIC/gtoffset`: "similar exactly once", as long as this machine lives."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from onceover.errors import UnreachableError
from onceover.offset_stores.store import CorruptOffsetsError, StoredOffsets, parse_offset

_END = "end"


class LocalFileOffsetStore:
    """See OffsetStore. A line a Kafka partition, `PARTITION OFFSET`, and a last one with their number and CRC-32.

    Replaced by a rename after both the file and its name are on the disk: a crash leaves the old file or the new one.
    The format has no place for a topic ID.
    """

    in_ledger = False

    def __init__(self, root: Path, group: str, topic: str) -> None:
        self._file = root / group / topic / "gtoffset"
        self.place = str(self._file)
        self._is_known = False

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        try:
            return StoredOffsets(_read(self._file.read_bytes(), self.place))
        except FileNotFoundError:
            return StoredOffsets()
        except OSError as error:
            raise UnreachableError(f"{self.place} cannot be read: {error.strerror}") from error

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore."""
        scratch = self._file.with_name(".gtoffset.new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with scratch.open("wb") as opened:
                opened.write(_written(offsets))
                opened.flush()
                os.fsync(opened.fileno())
            scratch.replace(self._file)
            for folder in self._file.parents[:3]:  # a new GROUP/TOPIC is a name in the folder above
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                if self._is_known:
                    break
            self._is_known = True
        except OSError as error:
            raise UnreachableError(f"{self.place} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """See OffsetStore."""


def _written(offsets: Mapping[int, int]) -> bytes:
    body = "".join(f"{p} {offset}\n" for p, offset in sorted(offsets.items())).encode()
    return body + f"{_END} {len(offsets)} {zlib.crc32(body):08x}\n".encode()


def _read(content: bytes, place: str) -> dict[int, int]:
    body, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n" if body else b""
    lines = body.splitlines()
    if not content.endswith(b"\n") or last != f"{_END} {len(lines)} {zlib.crc32(body):08x}".encode():
        raise CorruptOffsetsError(f"{place} is cut or was changed: its last line does not fit the others")
    pairs = [line.partition(b" ") for line in lines]
    return {parse_offset(p, place): parse_offset(offset, place) for p, _, offset in pairs}
