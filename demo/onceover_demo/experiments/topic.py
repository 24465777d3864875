"""A topic of numbered records, and a count of their outcome without the pipeline's help."""

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
_WINDOW_MS = 300_000
WINDOWS = _SPREAD_MS // _WINDOW_MS


def create(prefix: str) -> str:
    """Create a topic of 4 Kafka partitions and return its name."""
    name = f"{prefix}_{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    config = {"retention.ms": "-1"}
    admin.create_topics([NewTopic(name, KAFKA_PARTITIONS, 1, config=config)])[name].result(30)
    return name


def produce(topic: str, numbers: Iterable[int]) -> int:
    """Send one record a number, in turn over Kafka partitions, within ten minutes of event time; return how many."""
    producer = Producer({"bootstrap.servers": address("kafka"), "linger.ms": 20})
    count = 0
    for n in numbers:
        value = json.dumps({"at": NOON_MS + _find_offset_ms(n), "n": n})
        producer.produce(topic, value, partition=n % KAFKA_PARTITIONS)
        producer.poll(0)
        count += 1
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records were not produced")
    return count


def find_window(n: int) -> int:
    """Return the window of a number: its start in ms since 1970."""
    return NOON_MS + _find_offset_ms(n) // _WINDOW_MS * _WINDOW_MS


def _find_offset_ms(n: int) -> int:
    return n * 7919 % _SPREAD_MS


def parse_number(message: Any) -> int:
    """Return the number of a consumed record."""
    number: int = json.loads(message.value())["n"]
    return number


@dataclass(frozen=True, slots=True)
class RecordsOutcome:
    """Counts of processed records: `lost` were never processed, `repeated` counts each time beyond the first."""

    processed: int
    lost: int
    repeated: int


def count_outcome(processed: Iterable[int], produced: int) -> RecordsOutcome:
    """Count the outcome of the numbers from 0 to `produced`, exclusive, of which some were processed."""
    times = Counter(processed)
    return RecordsOutcome(times.total(), produced - len(times), times.total() - len(times))
