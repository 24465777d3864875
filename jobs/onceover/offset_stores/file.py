"""Offsets in a local file, `GROUP/TOPIC/gtoffset`: as durable as this machine's disk."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from onceover.errors import UnreachableError
from onceover.offset_stores.store import CorruptOffsetsError, OffsetStore, StoredOffsets, parse_offset

_END = "end"


class LocalFileOffsetStore(OffsetStore):
    """The store `file`. A line a Kafka partition, `PARTITION OFFSET`, and a last line with their number and CRC-32.

    A save renames a synced file over the old one and syncs the folder: a crash leaves the old file or the new one. The
    format has no field for a topic ID.
    """

    def __init__(self, root: Path, group: str, topic: str) -> None:
        self._file = root / group / topic / "gtoffset"
        self.place = str(self._file)
        self._is_synced = False

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        try:
            return StoredOffsets(_decode(self._file.read_bytes(), self.place))
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
                opened.write(_encode(offsets))
                opened.flush()
                os.fsync(opened.fileno())
            scratch.replace(self._file)
            for folder in self._file.parents[:3]:  # a new GROUP/TOPIC is a name in the folder above
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                if self._is_synced:
                    break
            self._is_synced = True
        except OSError as error:
            raise UnreachableError(f"{self.place} cannot be written: {error.strerror}") from error


def _encode(offsets: Mapping[int, int]) -> bytes:
    body = "".join(f"{p} {offset}\n" for p, offset in sorted(offsets.items())).encode()
    return body + f"{_END} {len(offsets)} {zlib.crc32(body):08x}\n".encode()


def _decode(content: bytes, place: str) -> dict[int, int]:
    body, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n" if body else b""
    lines = body.splitlines()
    if not content.endswith(b"\n") or last != f"{_END} {len(lines)} {zlib.crc32(body):08x}".encode():
        raise CorruptOffsetsError(f"{place} is cut or was changed: its last line does not match the others")
    pairs = [line.partition(b" ") for line in lines]
    return {parse_offset(p, place): parse_offset(offset, place) for p, _, offset in pairs}
