"""Offsets in a small file on HDFS: each state a new file, which its name makes the last one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from onceover.errors import BusyError
from onceover.model.json_text import json_text
from onceover.offset_stores.store import CorruptOffsetsError, StoredOffsets, parse_offset
from onceover.raw.hdfs import SmallFiles

VERSION = 1
_NAME = re.compile(r"offsets-(\d{20})\.json")
_OURS = re.compile(r"\.?offsets-(\d{20})\.json")  # what is not renamed yet has a dot before and more behind


class HdfsOffsetStore:
    """See OffsetStore. `offsets-NUMBER.json` in a folder of its own; the largest number is the state.

    HDFS cannot rename over a file, so a state is a new name, and what came before is swept afterwards, with whatever a
    writer that died left behind: there are never more than a few files. Of two writers one finds its number taken.
    """

    in_ledger = False

    def __init__(self, webhdfs: str, folder: str, group: str, topic: str) -> None:
        self._files = SmallFiles(webhdfs)
        self._folder = f"{folder}/{group}/{topic}"
        self._topic, self._group = topic, group
        self.place = self._folder
        self._number: int | None = None  # of the state that we saw last; None: look first
        self._swept = False

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        for _ in range(3):
            self._number = self._last()
            if self._number < 0:
                return StoredOffsets()
            path = self._path(self._number)
            content = self._files.read(path)
            if content is not None:
                return self._read(content, path)
            # Swept in between by another writer: there is a later one.
        raise BusyError(f"{self._folder} on HDFS is being written by somebody else")

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore. Raises BusyError if somebody else wrote meanwhile."""
        seen, self._number = self._number, None
        last = self._last() if seen is None else seen
        state = {
            "version": VERSION,
            "topic": self._topic,
            "topic_id": topic_id,
            "group": self._group,
            "offsets": {str(p): offset for p, offset in sorted(offsets.items())},
        }
        self._files.create(self._path(last + 1), json_text(state).encode())
        if last >= 0 and not self._files.remove(self._path(last)):
            # Only a writer that is ahead of us sweeps it, and what we wrote is older than its state.
            self._files.remove(self._path(last + 1))
            raise BusyError(f"{self._folder} on HDFS was written by somebody else at the same time")
        if not self._swept:
            self._sweep(last)
        self._number = last + 1

    def _sweep(self, last: int) -> None:
        """What writers that died have left, up to the state before ours: somebody may be at work on a later one."""
        for name in self._files.names(self._folder):
            found = _OURS.match(name)
            if found and int(found[1]) <= last:
                self._files.remove(f"{self._folder}/{name}")
        self._swept = True

    def close(self) -> None:
        """See OffsetStore."""

    def _path(self, number: int) -> str:
        return f"{self._folder}/offsets-{number:020d}.json"

    def _last(self) -> int:
        """The number of the state, -1 where there is none."""
        found = (_NAME.fullmatch(name) for name in self._files.names(self._folder))
        return max((int(match[1]) for match in found if match), default=-1)

    def _read(self, content: bytes, path: str) -> StoredOffsets:
        try:
            state = json.loads(content)
            if state["version"] != VERSION:
                raise CorruptOffsetsError(f"{path} on HDFS is of version {state['version']}; this is for {VERSION}")
            whose, topic_id = (state["topic"], state["group"]), str(state["topic_id"])
            offsets = {parse_offset(p, path): parse_offset(str(offset), path) for p, offset in state["offsets"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CorruptOffsetsError(f"{path} on HDFS is cut or damaged: it is not what this store writes") from None
        if whose != (self._topic, self._group):
            raise CorruptOffsetsError(f"{path} on HDFS holds offsets of topic {whose[0]!r} for group {whose[1]!r}")
        return StoredOffsets(offsets, topic_id)
