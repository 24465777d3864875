"""Offsets looked up in ranges, beside a plain search."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.spark.range_join import looked_up

pytestmark = pytest.mark.spark
LAST = 2**63 - 1
SOURCES = [KafkaPartition("0badcafe", 0), KafkaPartition("0badcafe", 1), KafkaPartition("00c0ffee", 0)]


def _ranges(chance: random.Random, sizes: int) -> list[tuple[OffsetRange, int]]:
    """Disjoint, some touching, some empty, and in every Kafka partition one to the last offset there can be."""
    found: list[tuple[OffsetRange, int]] = []
    for source in SOURCES:
        at = 0
        for _ in range(chance.randrange(12)):
            start = at + chance.choice([0, chance.randrange(sizes)])
            at = start + chance.choice([0, 1, chance.randrange(sizes)])
            found.append((OffsetRange(source, start, at), chance.randrange(5)))
        found.append((OffsetRange(source, LAST - chance.randrange(1, sizes), LAST), 7))
    return found


@pytest.mark.parametrize("sizes", [10, 10_000, 2**58])
def test_offset_finds_the_range_that_holds_it(spark: SparkSession, sizes: int) -> None:
    chance = random.Random(sizes)
    ranges = _ranges(chance, sizes)
    bounds = sorted({near for r, _ in ranges for near in (r.start - 1, r.start, r.end - 1, r.end) if 0 <= near <= LAST})
    rows = [(s.generation, s.kafka_partition, offset) for s in SOURCES for offset in bounds]
    rows += [("ffffffff", 0, 0)]
    records = spark.createDataFrame(rows, "generation string, kafka_partition int, offset bigint")
    found = records.transform(looked_up(ranges, "number")).collect()
    assert len(found) == len(rows), "none twice, none lost"
    expected = {
        (g, p, offset): next((n for r, n in ranges if (r.source.generation, r.source.kafka_partition) == (g, p)
                              and r.start <= offset < r.end), None)
        for g, p, offset in rows
    }  # fmt: skip
    assert {tuple(row)[:3]: row.number for row in found} == expected
    assert set(expected.values()) >= {None, 7}


def test_offset_finds_nothing_among_no_ranges(spark: SparkSession) -> None:
    records = spark.createDataFrame([("0badcafe", 0, 1)], "generation string, kafka_partition int, offset bigint")
    nothing = [(OffsetRange(SOURCES[0], 1, 1), 1)]
    assert records.transform(looked_up(nothing, "number")).first() == ("0badcafe", 0, 1, None)
