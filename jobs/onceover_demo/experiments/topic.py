"""A topic of numbered records, and counting what became of them without any help of the pipeline's."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from onceover.config.endpoints import address

KAFKA_PARTITIONS = 4
NOON_MS = 1_772_366_400_000  # 2026-03-01T12:00Z
_SPREAD_MS = 600_000


def create(prefix: str) -> str:
    """A new topic of 4 Kafka partitions; its name."""
    name = f"{prefix}_{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    config = {"retention.ms": "-1"}
    admin.create_topics([NewTopic(name, KAFKA_PARTITIONS, 1, config=config)])[name].result(30)
    return name


def produce(topic: str, numbers: Iterable[int]) -> int:
    """One record a number, in turn over the Kafka partitions, of ten minutes of event time; returns how many."""
    producer = Producer({"bootstrap.servers": address("kafka"), "linger.ms": 20})
    count = 0
    for n in numbers:
        value = json.dumps({"at": NOON_MS + n * 7919 % _SPREAD_MS, "n": n})
        producer.produce(topic, value, partition=n % KAFKA_PARTITIONS)
        producer.poll(0)
        count += 1
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records were not produced")
    return count


def number_in(message: Any) -> int:
    """The number of a record that a consumer was given."""
    found: int = json.loads(message.value())["n"]
    return found


@dataclass(frozen=True, slots=True)
class Seen:
    """How often records were processed: `lost` never, `repeated` once too often, each further time counts again."""

    processed: int
    lost: int
    repeated: int


def seen(processed: Iterable[int], produced: int) -> Seen:
    """Of the numbers that were processed, out of those from 0 on that were produced."""
    times = Counter(processed)
    return Seen(times.total(), produced - len(times), times.total() - len(times))
