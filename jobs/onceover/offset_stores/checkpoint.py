"""Offsets in the checkpoint of a Spark Structured Streaming query, in Spark's own format: taken over from a query, and
given back to it.

A checkpoint has a log `offsets` with the planned end of each batch, and a log `commits` of finished batches; both are
folders with a file a batch, named by its number. The state is the end of the last committed batch. A batch that was
planned and not committed does not count: Spark would run it again.
Source: OffsetSeqLog, CommitLog and KafkaSourceInitialOffsetWriter of Spark 4.2.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from onceover.errors import ConfigurationError
from onceover.offset_stores.store import (
    CorruptOffsetsError,
    OffsetStore,
    StoredOffsets,
    is_number,
    parse_json,
    parse_offset,
)
from onceover.raw.hdfs import SmallFiles

_VERSION = b"v1"
_KEPT = 100  # batches of history, as many as Spark keeps


class CheckpointOffsetStore(OffsetStore):
    """The store `checkpoint`. `folder` is the query's checkpoint on HDFS; its only source is that topic.

    A save is a batch of its own: its offsets first, then its commit, as Spark does it. The format has no field for a
    topic ID. If a query runs at the same time, one of the two writers finds its next batch's name taken: BusyError.
    """

    def __init__(self, webhdfs: str, folder: str, topic: str) -> None:
        self._files = SmallFiles(webhdfs)
        self._folder, self._topic = folder, topic
        self.place = folder
        self._is_stateless = False  # until checked; a query cannot change that under its checkpoint
        self._next: tuple[int, dict[str, Any]] | None = None  # the next batch, metadata of the last; None: not read

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore. Before a query's first commit, returns the offsets at which it was to begin.

        Raises ConfigurationError for a stateful query.
        """
        if not self._is_stateless and self._files.names(f"{self._folder}/state"):
            raise ConfigurationError(
                f"{self._folder} on HDFS is of a stateful query, which no other program can continue; name another "
                "checkpoint as offset_path, or another offset_store"
            )
        self._is_stateless = True
        committed = self._list_batches("commits")
        if committed:
            return StoredOffsets(self._read_offsets(max(committed))[1])
        first = f"{self._folder}/sources/0/0"
        content = self._files.read(first)
        if content is None:
            return StoredOffsets()
        # A zero byte before the version, so that Spark 2.1 could read it.
        lines = self._split_lines(content.removeprefix(b"\0"), first)
        return StoredOffsets(self._parse_offsets(lines[1] if len(lines) == 2 else b"", first))

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore. Raises BusyError if the query, or another writer, wrote meanwhile."""
        (number, before), self._next = self._next or self._read_next(), None
        watermark = before.get("batchWatermarkMs", 0)
        metadata = {
            "batchWatermarkMs": watermark,
            "batchTimestampMs": time.time_ns() // 1_000_000,
            "conf": before.get("conf", {}),
        }
        reached = {self._topic: {str(p): offset for p, offset in sorted(offsets.items())}}
        planned = b"\n".join((_VERSION, _compact(metadata), _compact(reached)))
        self._files.create(f"{self._folder}/offsets/{number}", planned)
        done = b"\n".join((_VERSION, _compact({"nextBatchWatermarkMs": watermark})))
        self._files.create(f"{self._folder}/commits/{number}", done)
        if number >= _KEPT:
            self._files.remove(f"{self._folder}/offsets/{number - _KEPT}")
            self._files.remove(f"{self._folder}/commits/{number - _KEPT}")
        self._next = (number + 1, metadata)

    def _read_next(self) -> tuple[int, dict[str, Any]]:
        """Return a number beyond every batch, planned ones too, which stay for their query; and the metadata of the
        last committed batch. Creates a missing checkpoint."""
        committed = self._list_batches("commits")
        if self._files.read(f"{self._folder}/metadata") is None:
            self._files.create(f"{self._folder}/metadata", _compact({"id": str(uuid.uuid4())}))
        metadata: dict[str, Any] = {}
        with suppress(CorruptOffsetsError):  # the offsets to save replace damaged ones
            metadata = self._read_offsets(max(committed))[0] if committed else {}
        return max(committed | self._list_batches("offsets"), default=-1) + 1, metadata

    def _list_batches(self, log: str) -> set[int]:
        return {int(name) for name in self._files.names(f"{self._folder}/{log}") if is_number(name)}

    def _read_offsets(self, number: int) -> tuple[dict[str, Any], dict[int, int]]:
        """Return the metadata and the offsets of one batch."""
        path = f"{self._folder}/offsets/{number}"
        content = self._files.read(path)
        if content is None:
            raise CorruptOffsetsError(f"{path} on HDFS is gone, but batch {number} was committed")
        lines = self._split_lines(content, path)
        if len(lines) != 3:
            raise CorruptOffsetsError(
                f"{path} on HDFS is of a query with {len(lines) - 2} sources, but offset_store checkpoint needs one"
            )
        try:
            metadata = parse_json(lines[1])
        except ValueError:
            metadata = None
        if not isinstance(metadata, dict):
            raise CorruptOffsetsError(
                f"{path} on HDFS is cut or damaged: its second line is not the metadata of a batch"
            )
        return metadata, self._parse_offsets(lines[2], path)

    def _split_lines(self, content: bytes, path: str) -> list[bytes]:
        version, *rest = content.strip(b"\n").split(b"\n")
        if version != _VERSION:
            shown = version[:20].decode("ascii", "backslashreplace")
            raise CorruptOffsetsError(f"{path} on HDFS begins with {shown!r}; this reads {_VERSION.decode()}")
        return [version, *rest]

    def _parse_offsets(self, line: bytes, path: str) -> dict[int, int]:
        try:
            by_topic = parse_json(line)
            if set(by_topic) != {self._topic}:
                raise CorruptOffsetsError(f"{path} on HDFS is of topic {', '.join(map(repr, by_topic))[:200]}")
            return {
                parse_offset(p, path): parse_offset(str(offset), path) for p, offset in by_topic[self._topic].items()
            }
        except (ValueError, TypeError, AttributeError):
            raise CorruptOffsetsError(f"{path} on HDFS is cut or damaged: its last line holds no offsets") from None


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
