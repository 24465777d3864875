"""The first experiment: `enable.auto.commit=true` commits what was fetched, whether or not it was processed.

A consumer fetches as fast as it can into a queue; a batch every interval takes as many records as the rate allows. The
client commits its position, which is the queue's end. After a restart the consumer continues from that position.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from onceover.config.endpoints import address
from onceover_demo.experiments.topic import (
    KAFKA_PARTITIONS,
    RecordsOutcome,
    count_outcome,
    create,
    parse_number,
    produce,
)


@dataclass(frozen=True, slots=True)
class AutoCommitResult:
    """The group's offsets as Kafka's own tools would show them, and the outcome of the records. `allowed` is how many
    records the rate allows in the first run."""

    current_offset: int
    log_end_offset: int
    allowed: int
    first_run: int
    second_run: int
    outcome: RecordsOutcome

    @property
    def right(self) -> bool:
        """Whether all is committed, and only the first run has processed records."""
        return self.first_run == self.allowed and (
            self.current_offset == self.log_end_offset == self.first_run + self.outcome.lost
            and self.second_run == self.outcome.repeated == 0 < self.outcome.lost
        )


def run(records: int = 100_006, interval: float = 2.0, rate: int = 50, seconds: float = 10.0) -> AutoCommitResult:
    """Run the experiment; `rate` is records per second and Kafka partition."""
    topic = create("auto_commit")
    produce(topic, range(records))
    processed = _consume(topic, int(interval * rate), interval, int(seconds / interval))
    first = len(processed)
    client = Consumer({"bootstrap.servers": address("kafka"), "group.id": topic})
    sources = [TopicPartition(topic, p) for p in range(KAFKA_PARTITIONS)]
    current = sum(p.offset for p in client.committed(sources, timeout=30))
    end = sum(client.get_watermark_offsets(p, timeout=30)[1] for p in sources)
    client.close()
    processed += _consume(topic, records, 0.0, 1)
    allowed = KAFKA_PARTITIONS * int(interval * rate) * int(seconds / interval)
    return AutoCommitResult(current, end, allowed, first, len(processed) - first, count_outcome(processed, records))


def _consume(topic: str, most: int, interval: float, batches: int) -> list[int]:
    """Return the numbers processed in so many batches, at most `most` of a Kafka partition in each."""
    consumer = Consumer(
        {
            "bootstrap.servers": address("kafka"),
            "group.id": topic,
            "enable.auto.commit": "true",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": "true",
        }
    )
    consumer.subscribe([topic])
    queue: dict[int, deque[int]] = defaultdict(deque)
    processed: list[int] = []
    at_end: set[int] = set()
    for _ in range(batches):
        due = time.monotonic() + interval
        while time.monotonic() < due or len(at_end) < KAFKA_PARTITIONS:
            for message in consumer.consume(1000, timeout=0.1):
                kafka_partition = message.partition() or 0
                if message.error() is None:
                    queue[kafka_partition].append(parse_number(message))
                else:
                    at_end.add(kafka_partition)
        for waiting in queue.values():
            processed += [waiting.popleft() for _ in range(min(most, len(waiting)))]
    consumer.close()  # a graceful stop, which commits the position once more
    return processed
