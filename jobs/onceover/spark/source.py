"""Offset ranges of a Kafka topic as a DataFrame: each range is a Spark partition.

Spark plans a range of integers, and task n reads offset range n: the driver makes no client, only tasks do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from onceover.errors import OffsetRangeError
from onceover.kafka.guarded_read import read_range, read_with_care
from onceover.kafka.memory_limit import MAX_BYTES, limit_memory
from onceover.kafka.reader import KafkaSource, LogReader
from onceover.kafka.record_batch import SCHEMA as READ
from onceover.kafka.shard_read import END_OFFSET, ShardRead
from onceover.kafka.topic import derive_generation
from onceover.lines.frame import hash_records, join_head
from onceover.model.digest import HALVES
from onceover.model.log_history import NO_EPOCH
from onceover.model.offsets import OffsetRange
from onceover.spark.decoding import Decoding
from onceover.spark.python_worker import freeze_modules

SCHEMA: Final = from_arrow_schema(pa.schema([*READ, *((half, pa.int64()) for half in HALVES)]))
_TEXTS: Final = [("value", pa.string()), ("head", pa.string())]
_HEADED: Final = pa.schema([*(field for field in READ if field.name not in ("value", "headers")), *_TEXTS])
"""What the contract's SQL sees of a record, its leader epoch, and the bytes of its line before VALUE. Both are strings
of any bytes: Spark copies each binary value into an object wherever rows are made."""
_SHARDS: Final = "onceover.shards"  # a local property of Spark, which tasks see


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
        limit_memory(MAX_BYTES)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for records in read_range(source, *cut[number]):
                    yield _add_halves(records, generation)

    return spark.range(0, len(cut), 1, len(cut)).mapInArrow(read, SCHEMA)


def read_shards(spark: SparkSession, source: KafkaSource, tasks: int, decoding: Decoding) -> DataFrame:
    """Return the records of the shards that `name_shards` names while an action runs, in the columns of _HEADED and of
    the decoding, and a row more for each shard, of the offset END_OFFSET, whose head is its `ShardRead`. So many tasks
    read them.

    An action raises the errors of reading, also for a shard of another generation than the source's.
    """

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_modules()
        limit_memory(MAX_BYTES)
        generation = derive_generation(source.topic_id)
        shards = json.loads(TaskContext.get().getLocalProperty(_SHARDS) or "[]")  # type: ignore[union-attr]
        with _keep_reader(source) as reader:
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    for shard in shards[number::tasks]:
                        yield from _read_shard(reader, generation, decoding, *shard)

    return spark.range(0, tasks, 1, tasks).mapInArrow(read, from_arrow_schema(_head_with(decoding)))


@contextmanager
def name_shards(spark: SparkSession, shards: Sequence[OffsetRange]) -> Iterator[None]:
    """Name the shards, none of them empty, that actions of the block read from a DataFrame of `read_shards`."""
    named = [(shard.source.generation, shard.source.kafka_partition, shard.start, shard.end) for shard in shards]
    spark.sparkContext.setLocalProperty(_SHARDS, json.dumps(named))
    try:
        yield
    finally:
        with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
            spark.sparkContext.setLocalProperty(_SHARDS, None)  # type: ignore[arg-type]


_kept: list[LogReader] = []
"""The reader of this worker's last task: to connect and to close take longer than a small batch."""


@contextmanager
def _keep_reader(source: KafkaSource) -> Iterator[LogReader]:
    """Take the kept reader if it is of this source, else a new one, and keep it unless the block raises."""
    reader = _kept.pop() if _kept else LogReader(source)
    if reader.source != source:
        reader.close()
        reader = LogReader(source)
    try:
        yield reader
    except BaseException:
        reader.close()
        raise
    _kept.append(reader)


def _read_shard(
    reader: LogReader, generation: str, decoding: Decoding, own: str, kafka_partition: int, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    if own != generation:
        raise OffsetRangeError(f"a shard of generation {own} is none of topic {reader.source.topic!r} by its ID")
    read = ShardRead(kafka_partition, start)
    for records in read_with_care(reader, kafka_partition, start, end):
        head = join_head(records, generation)
        read = read.add(records, head)
        yield from _add_head(records, head, decoding)
    ended = {"kafka_partition": kafka_partition, "offset": END_OFFSET, "kafka_timestamp": -1}
    yield pa.RecordBatch.from_pylist([{**ended, "head": read.as_bytes()}], _head_with(decoding))


def _head_with(decoding: Decoding) -> pa.Schema:
    return pa.schema([*_HEADED, *decoding.fields])


def _add_head(records: pa.RecordBatch, head: pa.Array, decoding: Decoding) -> Iterator[pa.RecordBatch]:
    columns, start = _head_with(decoding), 0
    for part, added in decoding.decode(records):
        texts = [part.column("value").view(pa.string()), head.slice(start, len(part)).view(pa.string())]
        start += len(part)
        arrays = [*(part.column(name) for name in _HEADED.names[:-2]), *texts, *added]
        yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def add_shard_ends(records: DataFrame, generation: str, decoding: Decoding) -> DataFrame:
    """Return records of one generation that were read before, in the columns of SCHEMA, as `read_shards`
    returns those of Kafka: the records of each Kafka partition are a shard, which begins at the first."""
    first, last = F.min("offset"), F.max("offset")
    read = F.struct(
        F.col("kafka_partition"),
        first.alias("start"),
        F.array(F.count(F.lit(1)), *map(F.sum, HALVES)).alias("digest"),
        F.min(F.when(F.col("kafka_timestamp") >= 0, F.col("kafka_timestamp"))).alias("oldest_ms"),
        F.array(F.array(F.lit(NO_EPOCH).cast("bigint"), first, last)).alias("epochs"),
    )
    ends = records.groupBy("kafka_partition").agg(F.to_json(read).alias("head"))
    fixed = {"offset": F.lit(END_OFFSET).cast("bigint"), "kafka_timestamp": F.lit(-1).cast("bigint")}
    decoded = (field.name for field in decoding.fields)
    ends = ends.withColumns(fixed | dict.fromkeys(("key", "value", "leader_epoch", *decoded), F.lit(None)))

    def add_heads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _add_head(batch, join_head(batch, generation), decoding)

    headed = from_arrow_schema(_head_with(decoding))
    return records.select(*READ.names).mapInArrow(add_heads, headed).unionByName(ends)


def _add_halves(records: pa.RecordBatch, generation: str) -> pa.RecordBatch:
    parts = hash_records(records, generation).astype("int64")
    halves = [pa.array(parts[:, number]) for number in range(len(HALVES))]
    return pa.RecordBatch.from_arrays([*records.columns, *halves], [*records.schema.names, *HALVES])
