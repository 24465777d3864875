"""Offset ranges of a Kafka topic as a DataFrame: each range is a Spark partition.

A range of integers is planned by Spark alone, and its partition number n reads range n: nothing happens on the driver,
and no client exists before a task runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from onceover.errors import OffsetRangeError
from onceover.kafka.reader import KafkaSource, read_range
from onceover.kafka.topic import derive_generation
from onceover.model.offsets import OffsetRange

__all__ = ["SCHEMA", "KafkaSource", "read_ranges"]

SCHEMA = "kafka_partition INT, offset BIGINT, kafka_timestamp BIGINT, key BINARY, headers BINARY, value BINARY"


def read_ranges(spark: SparkSession, source: KafkaSource, ranges: Sequence[OffsetRange]) -> DataFrame:
    """The records of these ranges, in SCHEMA, each read by a task of its own; rows of no ranges are none. Lazy: errors
    come with the action.

    Raises OffsetRangeError at once for a range of another generation than the source's. Each action reads anew, so
    observe or cache it rather than act twice.
    """
    generation = derive_generation(source.topic_id)
    for foreign in (r for r in ranges if r.source.generation != generation):
        raise OffsetRangeError(f"{foreign} is not a range of topic {source.topic!r} under ID {source.topic_id}")
    cut = [(r.source.kafka_partition, r.start, r.end) for r in ranges if len(r)]
    if not cut:
        return spark.createDataFrame([], SCHEMA)

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():  # one
                yield from read_range(source, *cut[number])

    return spark.range(0, len(cut), 1, len(cut)).mapInArrow(read, SCHEMA)
