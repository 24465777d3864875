"""A day of flights: produced, then ingested and repaired with something for each command to find."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import cycle, islice

from confluent_kafka import Producer
from tests.integration.lane import Lane
from tests.integration.planted_failures import create_topic, expire, replay, skip_to
from tests.integration.program import as_json, run

from onceover.config.endpoints import address
from onceover.ledger.database import upgrade_schema
from onceover_demo.flights import KAFKA_PARTITIONS, Flight, january

THREE_DAYS_MS = 3 * 86_400_000
_FIRST, _END = datetime(2013, 1, 5, 10, tzinfo=UTC), datetime(2013, 1, 5, 16, tzinfo=UTC)


def produce_day(topic: str, *, records: int = 400) -> list[Flight]:
    """Make a topic, and fill its Kafka partitions evenly with so many flights of 2013-01-05, 10:00 to 16:00 UTC,
    each of them several times, and three more that are beyond the horizon. Returns these hours' flights."""
    create_topic(topic, KAFKA_PARTITIONS)
    day = [each for each in january() if _FIRST <= each.scheduled < _END]
    produce(topic, islice(cycle(day), records))
    produce(topic, _select_hour(day, 13)[:3], later_ms=THREE_DAYS_MS)
    return day


def produce(topic: str, flights: Iterable[Flight], later_ms: int = 0, kafka_partition: int | None = None) -> None:
    producer = Producer({"bootstrap.servers": address("kafka")})
    for n, flight in enumerate(flights):
        where = n % KAFKA_PARTITIONS if kafka_partition is None else kafka_partition
        at = int(flight.departed.timestamp() * 1000) + later_ms
        producer.produce(topic, flight.value(), flight.tailnum.encode(), partition=where, timestamp=at)
    assert producer.flush(60) == 0


def plant(lane: Lane) -> Mapping[str, str]:
    """Ingest the day and repair it: 10:00 held stray bytes, 14:00 was landed twice. Kafka drops
    ten records that were never read. Returns what a reader puts for placeholders."""
    upgrade_schema(address("postgres"))
    day = produce_day(lane.topic, records=5_200)
    lane.ingest()
    produce(lane.topic, _select_hour(day, 14)[:5])
    replay(lane)
    lane.ingest()
    lane.hdfs().write(lane.layout.window_file(_FIRST), b"\n00000001-00000-0000000", append=True)
    lane.repair_detected()
    _lose_ten(lane, day, 1)
    (hole,) = json.loads(run("holes", lane.name, "--json").stdout)
    return {"RANGE": hole["range"], "2026-03-01": f"{datetime.now(UTC):%Y-%m-%d}"}


def _select_hour(day: Iterable[Flight], hour: int) -> list[Flight]:
    return [each for each in day if each.scheduled.hour == hour]


def _lose_ten(lane: Lane, day: list[Flight], kafka_partition: int) -> None:
    """Let Kafka drop ten records that the offset store skipped, and read one record after them."""
    shown = as_json("offsets", lane.name, "show")["kafka_partitions"][kafka_partition]
    produce(lane.topic, day[:10], kafka_partition=kafka_partition)
    skip_to(lane, shown["end"] + 10, kafka_partition)
    expire(lane, shown["end"] + 10, kafka_partition)
    produce(lane.topic, _select_hour(day, 15)[:1], kafka_partition=kafka_partition)
    lane.turn()
