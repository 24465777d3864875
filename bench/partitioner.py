"""Keys a second by MD5 beside confluent-kafka's own partitioner, and how evenly real keys are spread."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.table import Row, alternate, middle, runs
from onceover.config.endpoints import address
from onceover.kafka import Topic
from onceover.kafka.partitioner import Md5Producer, md5_partition
from onceover_demo.flights import january

PARTITIONS = 4
RECORDS = 100_000
EVEN = 0.05


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    keys = sorted({flight.tailnum.encode() for flight in january()})
    sent = [keys[n % len(keys)] for n in range(RECORDS)]
    expected = Counter(md5_partition(key, PARTITIONS) for key in sent)
    correct: list[bool] = []
    admin = AdminClient({"bootstrap.servers": address("kafka")})

    def timed(make: Callable[[dict[str, Any]], Producer], is_ours: bool) -> float:
        name = f"keys-{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
        settings = {"bootstrap.servers": address("kafka"), "linger.ms": 5, "queue.buffering.max.messages": 2 * RECORDS,
                    "partitioner": "murmur2_random"}  # fmt: skip
        producer = make(settings)
        started = time.monotonic()
        for key in sent:
            producer.produce(name, b"v", key=key)
        producer.flush(60)
        took = time.monotonic() - started
        ends = Topic(address("kafka"), name, "read_committed", {}).facts().end
        correct.append(sum(ends.values()) == RECORDS and (not is_ours or dict(ends) == {p: expected[p] for p in ends}))
        admin.delete_topics([name])[name].result(30)
        return took

    ours, peer = alternate(lambda: timed(Md5Producer, True), lambda: timed(Producer, False), runs())
    rate, peer_rate = RECORDS / middle(ours), RECORDS / middle(peer)
    uneven = max(Counter(md5_partition(key, PARTITIONS) for key in keys).values()) / (len(keys) / PARTITIONS) - 1
    return [
        Row("keyed records", rate, peer_rate, "confluent-kafka's murmur2", "1/s", rate / peer_rate, "reported", True,
            all(correct), runs()),
        Row("fullest of 4 above the mean", uneven, EVEN, "5 %", "", uneven / EVEN, "<= 1", uneven <= EVEN, True, 1),
    ], [f"{len(keys):,} tail numbers"]  # fmt: skip
