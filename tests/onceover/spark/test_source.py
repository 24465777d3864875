from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceover.errors import OffsetRangeError
from onceover.kafka.topic import derive_generation
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.spark.source import SCHEMA, KafkaSource, read_ranges

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
def test_range_of_markers_only_is_an_empty_spark_partition(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.transact(topic, [b"x"], abort=True)
    source = broker.source(topic)
    assert read_ranges(spark, source, make_ranges(source, (0, 0, 2))).collect() == []


@pytest.mark.stack
def test_empty_ranges_are_no_rows(spark: SparkSession, broker: Broker, topic: str) -> None:
    assert read_ranges(spark, broker.source(topic), []).collect() == []


@pytest.mark.stack
def test_failed_read_fails_the_action_with_the_reason(spark: SparkSession, broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"a", b"b"])
    broker.expire(topic, before=1)
    source = broker.source(topic)
    with pytest.raises(PySparkException, match=r"OffsetRangeError: .*does not hold offset 0"):
        read_ranges(spark, source, make_ranges(source, (0, 0, 2))).collect()


@pytest.mark.spark
def test_range_of_another_generation_is_refused_before_reading(spark: SparkSession) -> None:
    source = KafkaSource("127.0.0.1:1", "flights", "3QQ4iTqxTMuP8fUEtkphFQ")
    with pytest.raises(OffsetRangeError, match="is not a range of topic"):
        read_ranges(spark, source, [OffsetRange(KafkaPartition("00000000", 0), 0, 1)])
