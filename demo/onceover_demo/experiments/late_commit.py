"""The second experiment: each batch's offsets are committed asynchronously, when the next batch starts.

`python -m onceover_demo.experiments.late_commit` is one such consumer. A consumer that is killed after a batch, before
the next one, repeats exactly that batch.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
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
from onceover_local.stack.process import wait_for

SETTINGS = ((1.0, 50), (2.0, 50), (2.0, 100), (4.0, 50), (5.0, 100))
BATCHES_BEFORE_THE_KILL = 3


@dataclass(frozen=True, slots=True)
class LateCommitResult:
    """The result of one setting: interval in seconds, rate in records per second and Kafka partition."""

    interval: float
    rate: int
    outcome: RecordsOutcome

    @property
    def predicted(self) -> int:
        """Kafka partitions x interval x rate: the batch that was processed and not committed."""
        return int(KAFKA_PARTITIONS * self.interval * self.rate)

    @property
    def right(self) -> bool:
        return self.outcome.repeated == self.predicted and self.outcome.lost == 0


def run(interval: float, rate: int, records: int = 100_000) -> LateCommitResult:
    """Kill a consumer after some batches, then read the rest with a second process."""
    topic = create("late_commit")
    produce(topic, range(records))
    with tempfile.TemporaryDirectory(prefix="onceover-experiment-") as folder:
        log = Path(folder) / "processed"
        first = _start(topic, log, interval, int(interval * rate), BATCHES_BEFORE_THE_KILL)
        wait_for(
            lambda: psutil.Process(first.pid).status() == psutil.STATUS_STOPPED,
            60 + 2 * interval * BATCHES_BEFORE_THE_KILL,
            "the consumer to have processed its batches",
        )
        first.kill()
        first.wait()
        if code := _start(topic, log, 0.0, records, 0).wait():
            raise RuntimeError(f"the second consumer ended with {code}")
        return LateCommitResult(interval, rate, count_outcome(map(int, log.read_text().split()), records))


def _start(topic: str, log: Path, interval: float, most: int, hold_after: int) -> subprocess.Popen[bytes]:
    numbers = [str(value) for value in (interval, most, hold_after)]
    return subprocess.Popen([sys.executable, "-m", __name__, topic, str(log), *numbers])


def main(arguments: list[str]) -> None:
    """Consume the topic to its end, a batch every interval, and write each number that was processed to the log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topic")
    parser.add_argument("log", type=Path)
    parser.add_argument("interval", type=float)
    parser.add_argument("most", type=int, help="records of one Kafka partition in one batch")
    parser.add_argument("hold_after", type=int, help="batches after which to stop, to be killed; 0 is never")
    chosen = parser.parse_args(arguments)
    sources = [TopicPartition(chosen.topic, p) for p in range(KAFKA_PARTITIONS)]
    answered: list[object] = []
    consumer = Consumer(
        {
            "bootstrap.servers": address("kafka"),
            "group.id": chosen.topic,
            "enable.auto.commit": "false",
            "on_commit": lambda error, _: answered.append(error),
        }
    )
    at = {p.partition: max(p.offset, 0) for p in consumer.committed(sources, timeout=30)}
    ends = {p.partition: consumer.get_watermark_offsets(p, timeout=30)[1] for p in sources}
    consumer.assign([TopicPartition(chosen.topic, p, offset) for p, offset in at.items()])
    batches = 0
    with chosen.log.open("a") as log:
        while any(at[p] < ends[p] for p in at):
            started, committing = time.monotonic(), len(answered)
            if batches:  # the previous batch's offsets
                consumer.commit(offsets=[TopicPartition(chosen.topic, p, o) for p, o in at.items()], asynchronous=True)
            until = {p: min(at[p] + chosen.most, ends[p]) for p in at}
            while any(at[p] < until[p] for p in at):
                message = consumer.poll(1.0)
                if message is None or message.error() is not None:
                    continue
                p, offset = message.partition() or 0, message.offset() or 0
                if offset < until[p]:
                    log.write(f"{parse_number(message)}\n")
                    at[p] = offset + 1
                else:  # of the next batch: fetched too early, and read again by it
                    consumer.pause([TopicPartition(chosen.topic, p)])
            log.flush()
            batches += 1
            while batches > 1 and len(answered) == committing:
                consumer.poll(0.05)
            if batches == chosen.hold_after:
                os.kill(os.getpid(), signal.SIGSTOP)
            for p, offset in at.items():
                consumer.seek(TopicPartition(chosen.topic, p, offset))
            consumer.resume(sources)
            time.sleep(max(0.0, chosen.interval - (time.monotonic() - started)))
    if batches:
        consumer.commit(offsets=[TopicPartition(chosen.topic, p, o) for p, o in at.items()], asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1:])
