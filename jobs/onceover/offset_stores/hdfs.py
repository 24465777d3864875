"""Offsets in small files on HDFS: each state is a new file, and the largest number in a name is the last state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from onceover.errors import BusyError
from onceover.model.json_text import to_json
from onceover.offset_stores.store import CorruptOffsetsError, OffsetStore, StoredOffsets, parse_json, parse_offset
from onceover.raw.hdfs import SmallFiles

VERSION = 1
_NAME = re.compile(r"offsets-([0-9]{20})\.json")
_OURS = re.compile(r"\.?offsets-([0-9]{20})\.json")  # a file before its rename has a leading dot and a suffix


class HdfsOffsetStore(OffsetStore):
    """The store `hdfs`. `offsets-NUMBER.json` in a folder of its own; the largest number is the state.

    HDFS cannot rename over a file, so a state is a new name, and older files are swept afterwards, those of dead
    writers too: there are never more than a few. Of two writers one finds its number taken.
    """

    def __init__(self, webhdfs: str, folder: str, group: str, topic: str) -> None:
        self._files = SmallFiles(webhdfs)
        self._folder = f"{folder}/{group}/{topic}"
        self._topic, self._group = topic, group
        self.place = self._folder
        self._number: int | None = None  # of the last state read or written; None: not read
        self._swept = False

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        for _ in range(3):
            self._number = self._read_last_number()
            if self._number < 0:
                return StoredOffsets()
            path = self._path(self._number)
            content = self._files.read(path)
            if content is not None:
                return self._decode(content, path)
            # Another writer swept the file in between: there is a later one.
        raise BusyError(
            f"{self._folder} on HDFS is being written by another program; stop it, or give the pipeline its own group"
        )

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore. Raises BusyError if another writer wrote meanwhile."""
        seen, self._number = self._number, None
        last = self._read_last_number() if seen is None else seen
        state = {
            "version": VERSION,
            "topic": self._topic,
            "topic_id": topic_id,
            "group": self._group,
            "offsets": {str(p): offset for p, offset in sorted(offsets.items())},
        }
        self._files.create(self._path(last + 1), to_json(state).encode())
        if last >= 0 and not self._files.remove(self._path(last)):
            # Only a writer that is ahead removes that file, so its state is newer than the one written here.
            self._files.remove(self._path(last + 1))
            raise BusyError(f"{self._folder} on HDFS was written by another process at the same time")
        if not self._swept:
            self._sweep(last)
        self._number = last + 1

    def _sweep(self, last: int) -> None:
        """Remove files of writers that died, up to the previous state: another writer may be writing a later one."""
        for name in self._files.names(self._folder):
            match = _OURS.match(name)
            if match and int(match[1]) <= last:
                self._files.remove(f"{self._folder}/{name}")
        self._swept = True

    def _path(self, number: int) -> str:
        return f"{self._folder}/offsets-{number:020d}.json"

    def _read_last_number(self) -> int:
        """Return the number of the state, -1 if there is none."""
        matches = (_NAME.fullmatch(name) for name in self._files.names(self._folder))
        return max((int(match[1]) for match in matches if match), default=-1)

    def _decode(self, content: bytes, path: str) -> StoredOffsets:
        try:
            state = parse_json(content)
            if state["version"] != VERSION:
                raise CorruptOffsetsError(
                    f"{path} on HDFS is of version {repr(state['version'])[:40]}; this code reads version {VERSION}"
                )
            key, topic_id = (state["topic"], state["group"]), str(state["topic_id"])
            offsets = {parse_offset(p, path): parse_offset(str(offset), path) for p, offset in state["offsets"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CorruptOffsetsError(f"{path} on HDFS is cut or damaged: this store did not write it") from None
        if key != (self._topic, self._group):
            raise CorruptOffsetsError(
                f"{path} on HDFS holds offsets of topic {str(key[0])[:80]!r} for group {str(key[1])[:80]!r}"
            )
        return StoredOffsets(offsets, topic_id)
