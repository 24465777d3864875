"""Keys to Kafka partitions by MD5: evenly, and alike in every language."""

from __future__ import annotations

import hashlib
import random
from typing import Any

from confluent_kafka import KafkaException, Producer

from onceover.errors import TransientError, UnreachableError, UsageError


def md5_partition(key: bytes | None, partitions: int) -> int:
    """Return `MD5(key) mod partitions`, the digest read as a big-endian number; a random one without a key. Raise
    UsageError for fewer than one partition."""
    if partitions < 1:
        raise UsageError(f"a topic of {partitions} Kafka partitions takes no record; give it at least one")
    if key is None:
        return random.randrange(partitions)
    return int.from_bytes(hashlib.md5(key, usedforsecurity=False).digest()) % partitions


class Md5Producer(Producer):
    """A producer that places records by `md5_partition`.

    The producer counts a topic's Kafka partitions once: for its life keys stay in place, even if partitions are added.
    A producer that starts later counts those too and places keys differently, as Kafka's own partitioners do.
    """

    def __init__(self, settings: dict[str, Any], *, timeout: float = 30.0) -> None:
        super().__init__(settings)
        self._timeout = timeout
        self._partitions: dict[str, int] = {}

    def produce(  # type: ignore[override]
        self, topic: str, value: bytes | None, key: bytes | None = None, **options: Any
    ) -> None:
        """Produce as `Producer.produce`, but choose the Kafka partition. Raise UnreachableError if no broker answers,
        TransientError if the topic is unknown, BufferError if the client's queue is full: poll, and try again."""
        super().produce(topic, value, key, partition=md5_partition(key, self._count_partitions(topic)), **options)

    def _count_partitions(self, topic: str) -> int:
        if topic not in self._partitions:
            try:
                metadata = self.list_topics(topic, timeout=self._timeout).topics[topic]
            except KafkaException as error:
                raise UnreachableError(
                    f"topic {topic}: no broker says how many Kafka partitions it has: {error}; check its address"
                ) from error
            if metadata.error is not None or not metadata.partitions:
                raise TransientError(
                    f"topic {topic}: {metadata.error or 'the broker reports no Kafka partition'}; try again"
                )
            self._partitions[topic] = len(metadata.partitions)
        return self._partitions[topic]
