"""Offset ranges of a Kafka topic as a DataFrame: each range, or each piece of one, is a Spark partition.

Nothing happens on the driver but planning, and no client exists before a task runs: each is made inside its task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from onceover.errors import OffsetRangeError
from onceover.kafka.reading import KafkaSource, read_range
from onceover.kafka.topic import generation_of
from onceover.offsets import OffsetRange

__all__ = ["FORMAT", "SCHEMA", "KafkaSource", "OffsetRangeSource", "pieces", "read_ranges"]

FORMAT = "onceover_kafka"
SCHEMA = "kafka_partition INT, offset BIGINT, kafka_timestamp BIGINT, key BINARY, headers BINARY, value BINARY"


def read_ranges(spark: SparkSession, source: KafkaSource, ranges: Sequence[OffsetRange]) -> DataFrame:
    """The records of these ranges, in SCHEMA; rows of no ranges are none. Lazy: errors come with the action.

    Raises OffsetRangeError at once for a range of another generation than the source's. Each action reads anew, so
    observe or cache it rather than act twice.
    """
    generation = generation_of(source.topic_id)
    for foreign in (r for r in ranges if r.source.generation != generation):
        raise OffsetRangeError(f"{foreign} is not a range of topic {source.topic!r} under ID {source.topic_id}")
    cut = [piece for r in ranges for piece in pieces(r, source.splits)]
    if not cut:
        return spark.createDataFrame([], SCHEMA)
    spark.dataSource.register(OffsetRangeSource)
    options = {"source": json.dumps(asdict(source)), "ranges": json.dumps(cut)}
    return spark.read.format(FORMAT).options(**options).load()


def pieces(offset_range: OffsetRange, splits: int) -> list[tuple[int, int, int]]:
    """(kafka_partition, start, end) of at most `splits` nearly equal, touching, non-empty pieces of a range."""
    size = max(1, -(-len(offset_range) // max(1, splits)))
    starts = range(offset_range.start, offset_range.end, size)
    return [(offset_range.source.kafka_partition, at, min(at + size, offset_range.end)) for at in starts]


@dataclass(eq=False)
class _Piece(InputPartition):
    kafka_partition: int
    start: int
    end: int


class OffsetRangeSource(DataSource):
    """`spark.read.format("onceover_kafka")`; options `source` (a KafkaSource) and `ranges`, both as JSON."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._source = KafkaSource(**json.loads(options["source"]))
        self._pieces = [_Piece(*piece) for piece in json.loads(options["ranges"])]

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return _RangeReader(self._source, self._pieces)


class _RangeReader(DataSourceReader):
    def __init__(self, source: KafkaSource, planned: Sequence[_Piece]) -> None:
        self._source = source
        self._planned = planned

    def partitions(self) -> Sequence[InputPartition]:
        return self._planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, _Piece):
            raise TypeError(f"{partition!r} was not planned by {FORMAT}")
        return read_range(self._source, partition.kafka_partition, partition.start, partition.end)
