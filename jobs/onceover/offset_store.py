"""Where a pipeline's offsets live, and what every such place must promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol


class OffsetStore(Protocol):
    """Per Kafka partition of one topic, the next offset to read.

    A committed offset is the next one to read, never the last one read: after the range [start, end) was landed, `end`
    is committed, and a range planned from it begins there. A Kafka partition nobody committed has none, which is not
    zero. Offsets survive every process; what `commit` returned is what the next `load` sees, from anywhere.
    """

    def load(self, kafka_partitions: Iterable[int]) -> Mapping[int, int]:
        """The committed offset of each of these; those without one are absent. Nothing asked, nothing loaded."""

    def commit(self, offsets: Mapping[int, int]) -> Mapping[int, int]:
        """Commit, durably when it returns, and return what is stored now for these Kafka partitions.

        Never backwards: what is stored is read first, a lower offset is refused and logged, and the higher one stays.
        Two writers at a time may pass each other between read and write; the driver's epoch keeps them apart.
        """

    def close(self) -> None:
        """Let connections go; nothing may be called afterwards."""


def _kafka(bootstrap: str, topic: str, group: str, properties: Mapping[str, str]) -> OffsetStore:
    from onceover.kafka import KafkaOffsetStore

    return KafkaOffsetStore(bootstrap, topic, group, properties)


# What `ingest.offset_store` may name. Another store is one more line here and one more run of the contract suite.
OFFSET_STORES: Mapping[str, Callable[[str, str, str, Mapping[str, str]], OffsetStore]] = {"kafka": _kafka}
