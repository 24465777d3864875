"""A topic's log that loses its end while the broker is down, as after a power cut: one file, cut at a batch."""

from __future__ import annotations

import re
import struct
from contextlib import closing
from pathlib import Path

from confluent_kafka import Producer
from tests.integration.events import event
from tests.integration.lane import Lane

from onceover.config.endpoints import address
from onceover.errors import TransientError
from onceover.kafka import Topic
from onceover_local.stack import Stack
from onceover_local.stack.process import wait_for

_HEADER = struct.Struct(">qi")  # base offset, length of what follows
_CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown")


def land_and_cut(lane: Lane, stack: Stack) -> None:
    """Land six records in two windows by two batches of Kafka's, certify them, and cut the log to its first batch."""
    lane.produce([event(n, amount=n) for n in range(3)])
    lane.land([event(n, amount=n) for n in (3, 5, 6)])
    assert lane.detect().certified == 2
    cut_log(stack, lane.topic, 3)


def cut_log(stack: Stack, topic: str, offset: int) -> None:
    """Restart the broker with the topic's Kafka partition 0 cut before the batch that begins at `offset`."""
    data = stack.local / "kafka" / "data"
    stack.stop_part("kafka")
    try:
        _cut_folder(data / f"{topic}-0", offset)
        for name in _CHECKPOINTS:
            (data / name).unlink(missing_ok=True)
    finally:
        stack.start_part("kafka")
    wait_for(lambda: is_led(address("kafka"), topic), 30, f"the broker to lead topic {topic} again")


def is_led(brokers: str, topic: str) -> bool:
    """Return whether a broker answers for the topic: shortly after its start it knows the new leader epoch from the
    controller, and refuses that epoch, for it does not lead in it yet."""
    with closing(Topic(brokers, topic, "read_committed", {})) as opened:
        try:
            opened.facts()
        except TransientError:
            return False
    return True


def _cut_folder(folder: Path, offset: int) -> None:
    (segment,) = folder.glob("*.log")
    content = segment.read_bytes()
    at = 0
    while at < len(content):
        base, length = _HEADER.unpack_from(content, at)
        if base >= offset:
            break
        at += _HEADER.size + length
    assert at < len(content), f"{segment} has no batch from offset {offset} on"
    assert base == offset, f"no batch of {segment} begins at offset {offset}"
    segment.write_bytes(content[:at])
    for other in folder.iterdir():
        if other.suffix in (".index", ".timeindex", ".snapshot", ".txnindex"):
            other.unlink()


def produce_compressed(topic: str, records: int) -> None:
    """Produce a batch of that many records, compressed by gzip."""
    producer = Producer({"bootstrap.servers": address("kafka"), "compression.type": "gzip", "linger.ms": 1000})
    for _ in range(records):
        producer.produce(topic, b"x" * 1_000, partition=0)
    assert producer.flush(30) == 0


def damage_batch(stack: Stack, topic: str, number: int = 0) -> None:
    """Overwrite some of one of the topic's batches that gzip compressed, behind the running broker's back."""
    (segment,) = (stack.local / "kafka" / "data" / f"{topic}-0").glob("*.log")
    content = segment.read_bytes()
    starts = [found.start() for found in re.finditer(re.escape(b"\x1f\x8b\x08"), content)]
    with segment.open("r+b") as file:
        file.seek(starts[number] + 12)
        file.write(b"\xff" * 8)
