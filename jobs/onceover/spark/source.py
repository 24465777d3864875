"""Offset ranges of a Kafka topic as a DataFrame: each range is a Spark partition.

Spark plans a range of integers, and task n reads offset range n: the driver makes no client, only tasks do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from onceover.errors import OffsetRangeError
from onceover.kafka.reader import KafkaSource, read_range
from onceover.kafka.topic import derive_generation
from onceover.lines.stored import hash_records
from onceover.model.digest import HALVES
from onceover.model.offsets import OffsetRange

__all__ = ["RECORD", "SCHEMA", "KafkaSource", "read_ranges"]

RECORD = "kafka_partition INT, offset BIGINT, kafka_timestamp BIGINT, key BINARY, headers BINARY, value BINARY"
SCHEMA = f"{RECORD}, leader_epoch INT, {', '.join(f'{half} BIGINT' for half in HALVES)}"


def read_ranges(spark: SparkSession, source: KafkaSource, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Return the records of these ranges, in SCHEMA, each with its digest's halves as it was read, and each range read
    by a task of its own; no rows for no ranges.

    Lazy: errors of reading are raised by the action, and each action reads Kafka again, so cache the frame. Raises
    OffsetRangeError at once for a range of another generation than the source's.
    """
    generation = derive_generation(source.topic_id)
    for foreign in (r for r in ranges if r.source.generation != generation):
        raise OffsetRangeError(f"{foreign} is not a range of topic {source.topic!r} under ID {source.topic_id}")
    cut = [(r.source.kafka_partition, r.start, r.end) for r in ranges if len(r)]
    if not cut:
        return spark.createDataFrame([], SCHEMA)

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for records in read_range(source, *cut[number]):
                    yield _add_halves(records, generation)

    return spark.range(0, len(cut), 1, len(cut)).mapInArrow(read, SCHEMA)


def _add_halves(records: pa.RecordBatch, generation: str) -> pa.RecordBatch:
    parts = hash_records(records, generation).view("int64")
    halves = [pa.array(parts[:, number]) for number in range(len(HALVES))]
    return pa.RecordBatch.from_arrays([*records.columns, *halves], [*records.schema.names, *HALVES])
