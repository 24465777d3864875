"""Offsets kept nowhere: a driver remembers its own, and the next driver starts where the pipeline's policy says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onceover.offset_stores.store import OffsetStore, StoredOffsets


class NoOffsetStore(OffsetStore):
    """The store `none`, which keeps no offsets beyond the process: every start is a first start."""

    def __init__(self, group: str, topic: str) -> None:
        self.place = f"nowhere ({group}, {topic})"
        self._held = StoredOffsets()

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """Return the offsets that this process saved."""
        return self._held

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """Keep these offsets for this process."""
        self._held = StoredOffsets(dict(offsets), topic_id)
