"""Keys to Kafka partitions by MD5: evenly, and the same from every language that has MD5."""

from __future__ import annotations

import hashlib
import random
from typing import Any

from confluent_kafka import KafkaException, Producer

from onceover.errors import TransientError, UnreachableError, UsageError


def md5_partition(key: bytes | None, partitions: int) -> int:
    """`MD5(key) mod partitions`, the digest read as a big-endian number; any of them where there is no key."""
    if partitions < 1:
        raise UsageError(f"a topic of {partitions} Kafka partitions takes no record")
    if key is None:
        return random.randrange(partitions)
    return int.from_bytes(hashlib.md5(key, usedforsecurity=False).digest()) % partitions


class Md5Producer:
    """A confluent_kafka.Producer that places records by `md5_partition`.

    How many Kafka partitions a topic has is asked once: for this producer's life keys stay where they are, also when
    some are added. A producer that starts later counts them too, and places keys anew, as Kafka's own partitioners do.
    """

    def __init__(self, producer: Producer, *, timeout: float = 30.0) -> None:
        self._producer, self._timeout = producer, timeout
        self._partitions: dict[str, int] = {}

    def produce(self, topic: str, value: bytes | None, key: bytes | None = None, **options: Any) -> None:
        """`Producer.produce` but for the Kafka partition. Raises UnreachableError if no broker answers, TransientError
        if it does not know the topic, BufferError if the client's queue is full: poll, and try again."""
        self._producer.produce(
            topic, value, key, partition=md5_partition(key, self._count_partitions(topic)), **options
        )

    def poll(self, timeout: float = 0.0) -> int:
        """See Producer.poll."""
        return int(self._producer.poll(timeout))

    def flush(self, timeout: float = -1) -> int:
        """See Producer.flush: how many records were not delivered."""
        return int(self._producer.flush(timeout))

    def _count_partitions(self, topic: str) -> int:
        if topic not in self._partitions:
            try:
                found = self._producer.list_topics(topic, timeout=self._timeout).topics[topic]
            except KafkaException as error:
                raise UnreachableError(
                    f"topic {topic}: no broker says how many Kafka partitions it has: {error}"
                ) from error
            if found.error is not None or not found.partitions:
                raise TransientError(f"topic {topic}: {found.error or 'the broker names no Kafka partition of it'}")
            self._partitions[topic] = len(found.partitions)
        return self._partitions[topic]
