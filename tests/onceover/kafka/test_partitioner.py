"""The MD5 partitioner: published values pin the place of a key, real keys show the evenness."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.onceover.conftest import Broker

from onceover.errors import TransientError, UnreachableError, UsageError
from onceover.kafka.partitioner import Md5Producer, md5_partition
from onceover_demo.flights import january

# RFC 1321, A.5: the test suite of MD5.
PUBLISHED = {
    b"": 0xD41D8CD98F00B204E9800998ECF8427E,
    b"a": 0x0CC175B9C0F1B6A831C399E269772661,
    b"abc": 0x900150983CD24FB0D6963F7D28E17F72,
    b"message digest": 0xF96B697D7CB7938D525A2F31AAF161D0,
    b"1234567890" * 8: 0x57EDF4A22BE3C955AC49DA2E2107B67A,
}
# How many tail numbers Kafka's default partitioner gives each of four Kafka partitions.
BY_MURMUR2 = {0: 816, 1: 779, 2: 766, 3: 780}


@pytest.mark.parametrize("key", PUBLISHED)
def test_key_is_placed_by_its_md5(key: bytes) -> None:
    for partitions in (1, 2, 3, 4, 64, 1000):
        assert md5_partition(key, partitions) == PUBLISHED[key] % partitions


def test_record_without_a_key_takes_any_kafka_partition() -> None:
    counts = Counter(md5_partition(None, 4) for _ in range(4000))
    assert set(counts) == {0, 1, 2, 3}
    assert min(counts.values()) > 800


def test_place_among_no_kafka_partitions_is_refused() -> None:
    with pytest.raises(UsageError):
        md5_partition(b"a", 0)


def test_tail_numbers_are_spread_as_evenly_as_by_murmur2() -> None:
    keys = sorted({flight.tailnum.encode() for flight in january() if flight.tailnum})
    ours, kafkas = Counter(md5_partition(key, 4) for key in keys), Counter(BY_MURMUR2)
    assert len(keys) == kafkas.total()
    assert compute_excess(ours) <= 0.05
    assert abs(compute_excess(ours) - compute_excess(kafkas)) <= 0.01


@pytest.mark.stack
def test_producer_places_records_by_their_keys(broker: Broker) -> None:
    topic = broker.create(4)
    producer = Md5Producer({"bootstrap.servers": broker.address, "log_level": 0})
    keys = [str(n).encode() for n in range(200)]
    for key in keys:
        producer.produce(topic, b"v", key)
    producer.produce(topic, b"v")
    assert producer.flush(30) == 0
    ends = broker.facts(topic).end
    expected = Counter(md5_partition(key, 4) for key in keys)
    assert sum(ends.values()) == 201
    assert all(ends[p] - expected[p] in (0, 1) for p in ends)
    with pytest.raises(TransientError, match="topic nowhere"):
        producer.produce("nowhere", b"v", b"k")


def test_missing_broker_is_reported() -> None:
    producer = Md5Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, timeout=0.2)
    with pytest.raises(UnreachableError, match="no broker says"):
        producer.produce("t", b"v", b"k")


def compute_excess(counts: Counter[int]) -> float:
    """Return by which part of the mean the largest count exceeds it."""
    return max(counts.values()) / (sum(counts.values()) / len(counts)) - 1
