from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceover.errors import OffsetRangeError
from onceover.kafka.guarded_read import read_range
from onceover.kafka.reader import KafkaSource
from onceover.kafka.shard_read import END_OFFSET, ShardRead, parse_shard
from onceover.kafka.topic import derive_generation
from onceover.lines.frame import hash_records
from onceover.model.digest import HALVES, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.spark.decoding import Decoding
from onceover.spark.source import SCHEMA, add_shard_ends, name_shards, read_ranges, read_shards

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker


def make_ranges(source: KafkaSource, *bounds: tuple[int, int, int]) -> list[OffsetRange]:
    generation = derive_generation(source.topic_id)
    return [OffsetRange(KafkaPartition(generation, p), start, end) for p, start, end in bounds]


@pytest.mark.stack
def test_ranges_are_each_read_and_nothing_else(spark: SparkSession, broker: Broker) -> None:
    topic = broker.create(kafka_partitions=2)
    for kafka_partition in (0, 1):
        broker.produce(topic, [b"%d-%d" % (kafka_partition, i) for i in range(10)], kafka_partition, key=b"k")
    source = broker.source(topic)
    read = read_ranges(spark, source, make_ranges(source, (0, 2, 5), (1, 9, 10), (1, 0, 0)))
    assert read.schema.simpleString() == spark.createDataFrame([], SCHEMA).schema.simpleString()
    assert {(r.kafka_partition, r.offset, bytes(r.value), bytes(r.headers)) for r in read.collect()} == {
        *((0, i, b"0-%d" % i, b"") for i in (2, 3, 4)),
        (1, 9, b"1-9", b""),
    }


@pytest.mark.stack
def test_range_of_markers_only_or_no_range_has_no_rows(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.transact(topic, [b"x"], abort=True)
    source = broker.source(topic)
    for ranges in (make_ranges(source, (0, 0, 2)), []):
        assert read_ranges(spark, source, ranges).collect() == []


@pytest.mark.stack
def test_failed_read_fails_the_action_with_the_reason(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"a", b"b"])
    broker.expire(topic, before=1)
    source = broker.source(topic)
    with pytest.raises(PySparkException, match=r"OffsetRangeError: .*does not hold offset 0"):
        read_ranges(spark, source, make_ranges(source, (0, 0, 2))).collect()


@pytest.mark.stack
@pytest.mark.parametrize("tasks", [1, 3])
def test_shards_are_read_to_their_ends_by_one_query(spark: SparkSession, broker: Broker, tasks: int) -> None:
    topic = broker.create(kafka_partitions=2)
    for kafka_partition in (0, 1):
        broker.produce(topic, [b"%d-%d" % (kafka_partition, i) for i in range(10)], kafka_partition)
    source = broker.source(topic)
    query = read_shards(spark, source, tasks, Decoding())
    for bounds in ([(0, 2, 5), (1, 0, 10), (0, 5, 9), (1, 10, 10)], [(1, 9, 10)]):
        shards = [shard for shard in make_ranges(source, *bounds) if len(shard)]
        with name_shards(spark, shards):
            rows = query.collect()
        assert sorted((r.kafka_partition, r.offset) for r in rows if r.offset != END_OFFSET) == sorted(
            (n, offset) for n, start, end in bounds for offset in range(start, end)
        )
        ends = {(end.kafka_partition, end.start): end
                for row in rows if row.offset == END_OFFSET and (end := parse_shard(row.head.encode()))}  # fmt: skip
        assert len(ends) == sum(row.offset == END_OFFSET for row in rows) == len(shards)
        for shard in shards:
            read = list(read_range(source, shard.source.kafka_partition, shard.start, shard.end))
            parts = sum(int(hash_records(batch, shard.source.generation)[:, 0].sum()) for batch in read)
            end = ends[(shard.source.kafka_partition, shard.start)]
            assert (end.digest.records, end.digest.high1) == (len(shard), parts)
            assert end.oldest_ms == min(pc.min(batch.column("kafka_timestamp")).as_py() for batch in read)
            assert end.epochs == {0: (shard.start, shard.end - 1)}
    assert query.collect() == [], "no shards are named"


@pytest.mark.stack
def test_shard_of_another_generation_fails_its_task(spark: SparkSession, broker: Broker, topic: str) -> None:
    shards = [OffsetRange(KafkaPartition("00000000", 0), 0, 1)]
    with name_shards(spark, shards), pytest.raises(PySparkException, match="is none of topic"):
        read_shards(spark, broker.source(topic), 1, Decoding()).collect()


@pytest.mark.spark
def test_records_that_were_read_before_end_like_a_shard(spark: SparkSession) -> None:
    halves = ", ".join(f"offset * {n} AS {half}" for n, half in enumerate(HALVES, 2))
    records = spark.range(5, 10).selectExpr(
        "CAST(id % 2 AS INT) AS kafka_partition", "id AS offset", "id - 7 AS kafka_timestamp",
        "CAST(id + 1 AS INT) AS leader_epoch",
        *(f"CAST(NULL AS BINARY) AS {name}" for name in ("key", "headers", "value")),
    ).selectExpr("*", *halves.split(", "))  # fmt: skip
    rows = add_shard_ends(records, "00c0ffee", Decoding()).collect()
    ends = [parse_shard(row.head.encode()) for row in rows if row.offset == END_OFFSET]
    assert sorted(ends, key=lambda end: end.kafka_partition) == [
        ShardRead(0, 6, Digest(2, 28, 42, 56, 70), 1, {-1: (6, 8)}),
        ShardRead(1, 5, Digest(3, 42, 63, 84, 105), 0, {-1: (5, 9)}),
    ]
    read = sorted((row.offset, row.leader_epoch) for row in rows if row.offset != END_OFFSET)
    assert read == [(5, 6), (6, 7), (7, 8), (8, 9), (9, 10)], "the line that is released keeps its record's epoch"


@pytest.mark.spark
def test_range_of_another_generation_is_refused_before_reading(spark: SparkSession) -> None:
    source = KafkaSource("127.0.0.1:1", "flights", "3QQ4iTqxTMuP8fUEtkphFQ")
    with pytest.raises(OffsetRangeError, match="is not a range of topic"):
        read_ranges(spark, source, [OffsetRange(KafkaPartition("00000000", 0), 0, 1)])
