"""All of a pipeline's raw read once: which offsets it holds, in unbroken runs, and what each file holds of each run."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Row, SparkSession, Window
from pyspark.sql import functions as F

from onceover.digest import Digest
from onceover.offsets import KafkaPartition, OffsetRange
from onceover.raw import RawFile, Run
from onceover.spark import lines
from onceover.window import from_ms, to_ms

_HALVES = ("high1", "low1", "high2", "low2")
_SOURCE = ("generation", "kafka_partition")
_QUARANTINE = -1  # no window starts before 1970


def scan(spark: SparkSession, hdfs: str, files: Sequence[RawFile], window_minutes: int) -> list[Run]:
    """The runs of every Kafka partition, in their order. Each ID counts once, in the first file that has it, whatever
    else was appended; damaged lines, and lines in another window's file, count for nothing."""
    if not files:
        return []
    paths = [hdfs.rstrip("/") + file.path for file in files]
    length = F.lit(window_minutes * 60_000)
    numbered = spark.createDataFrame(
        [
            (path, n, _QUARANTINE if file.window_start is None else to_ms(file.window_start))
            for n, (path, file) in enumerate(zip(paths, files, strict=True))
        ],
        "file_path string, place int, window_ms bigint",
    )
    halves = lines.digest_halves(F.col("id"), F.col("content"))
    belongs = F.coalesce(F.col("event_ms") - F.pmod("event_ms", length), F.lit(_QUARANTINE)) == F.col("window_ms")
    distinct = (
        spark.read.text(paths, lineSep="\n")
        .select("value", F.col("_metadata.file_path"))
        .where(lines.not_empty())
        .join(F.broadcast(numbered), "file_path")
        .transform(lines.parsed())
        .where("intact")
        .where(belongs)
        .select(*_SOURCE, "offset", F.struct("place", *halves, "event_ms", "kafka_timestamp").alias("one"))
        .groupBy(*_SOURCE, "offset")
        .agg(F.min("one").alias("one"))
        .select(*_SOURCE, "offset", "one.*")
    )
    in_order = Window.partitionBy(*_SOURCE).orderBy("offset")
    rows = (
        distinct.withColumn("run", F.col("offset") - F.row_number().over(in_order))
        .groupBy(*_SOURCE, "run", "place")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count(F.lit(1)).alias("records"),
            *(F.sum(half).alias(half) for half in _HALVES),
            F.max("event_ms").alias("max_event_ms"),
            F.min(F.when(F.col("kafka_timestamp") >= 0, F.col("kafka_timestamp"))).alias("oldest_ms"),
        )
        .orderBy(*_SOURCE, "run", "place")
        .collect()  # one row a run and file
    )
    by_run: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        by_run.setdefault((row.generation, row.kafka_partition, row.run), []).append(row)
    return [_run(KafkaPartition(key[0], key[1]), held) for key, held in sorted(by_run.items())]


def _run(source: KafkaPartition, rows: Sequence[Row]) -> Run:
    newest = max((row.max_event_ms for row in rows if row.max_event_ms is not None), default=None)
    oldest = min((row.oldest_ms for row in rows if row.oldest_ms is not None), default=None)
    return Run(
        OffsetRange(source, min(row.first for row in rows), max(row.last for row in rows) + 1),
        tuple((row.place, Digest(row.records, *(getattr(row, half) for half in _HALVES))) for row in rows),
        None if newest is None else from_ms(newest),
        None if oldest is None else from_ms(oldest),
    )
