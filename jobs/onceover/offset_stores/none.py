"""No store: what a driver has read it knows itself, and the next one starts where its policy says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onceover.offset_stores.store import StoredOffsets


class NoOffsetStore:
    """See OffsetStore, of which it keeps nothing beyond the process: every start is a first start."""

    in_ledger = False

    def __init__(self, group: str, topic: str) -> None:
        self.place = f"nowhere ({group}, {topic})"
        self._held = StoredOffsets()

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """What this process saved."""
        return self._held

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """For this process."""
        self._held = StoredOffsets(dict(offsets), topic_id)

    def close(self) -> None:
        """See OffsetStore."""
