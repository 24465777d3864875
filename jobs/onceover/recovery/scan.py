"""Scan of all of a pipeline's raw: the offsets in unbroken runs, and the part of each run in each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, Row, SparkSession, Window
from pyspark.sql import functions as F

from onceover.errors import TerminalError
from onceover.model.digest import HALVES, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawFile, Run
from onceover.model.window import from_ms, to_ms
from onceover.spark import lines

_SOURCE = ("generation", "kafka_partition")
_QUARANTINE = -1  # no window starts before 1970
_BEFORE_THE_LOG = -(1 << 62)  # less than any run's number
_MOST_ROWS = 1_000_000


def scan(
    spark: SparkSession, hdfs: str, files: Sequence[RawFile], window_minutes: int, logs: Mapping[KafkaPartition, int]
) -> tuple[list[Run], list[Run]]:
    """Return the runs of every Kafka partition, in order, and the runs of released records. Each ID counts once, in the
    first file that has it; damaged lines, and lines in another window's file, are not counted. An ID in a window as
    well as in quarantine was released from quarantine, and counts once in each.

    `logs` are the offsets at which the log of each Kafka partition begins. Offsets missing before that, or of a
    partition without a log, cannot be read any more: a gap there ends no run. Raises TerminalError for more than a
    million rows of runs and files.
    """
    if not files:
        return [], []
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
    quarantined = F.col("window_ms") == _QUARANTINE
    belongs = F.coalesce(F.col("event_ms") - F.pmod("event_ms", length), F.lit(_QUARANTINE)) == F.col("window_ms")
    distinct = (
        spark.read.text(paths, lineSep="\n")
        .select("value", F.col("_metadata.file_path"))
        .where(lines.not_empty())
        .join(F.broadcast(numbered), "file_path")
        .transform(lines.parse_lines())
        .where("intact")
        .where(belongs)
        .select(
            *_SOURCE, "offset", "window_ms", F.struct("place", *halves, "event_ms", "kafka_timestamp").alias("line")
        )
        .groupBy(*_SOURCE, "offset")
        .agg(
            F.min(F.when(quarantined, F.col("line"))).alias("read"),
            F.min(F.when(~quarantined, F.col("line"))).alias("filed"),
        )
        .select(*_SOURCE, "offset", F.explode(_split_read_and_released()))
        .select(*_SOURCE, "offset", "col.released", "col.line.*")
    )
    begins = F.broadcast(
        spark.createDataFrame(
            [(source.generation, source.kafka_partition, start) for source, start in logs.items()],
            "generation string, kafka_partition int, begins bigint",
        )
    )
    in_order = Window.partitionBy(*_SOURCE, "released").orderBy("offset")
    before_the_log = ~F.col("released") & F.coalesce(F.col("offset") < F.col("begins"), F.lit(True))
    rows = (
        distinct.join(begins, list(_SOURCE), "left")
        .withColumn("position", F.row_number().over(in_order))
        .withColumn(
            "run", F.when(before_the_log, F.lit(_BEFORE_THE_LOG)).otherwise(F.col("offset") - F.col("position"))
        )
        .groupBy(*_SOURCE, "released", "run", "place")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count(F.lit(1)).alias("records"),
            *(F.sum(half).alias(half) for half in HALVES),
            F.max("event_ms").alias("max_event_ms"),
            F.min(F.when(F.col("kafka_timestamp") >= 0, F.col("kafka_timestamp"))).alias("oldest_ms"),
        )
        .limit(_MOST_ROWS + 1)
        .collect()  # one row a run and file
    )
    if len(rows) > _MOST_ROWS:
        raise TerminalError(
            f"raw has more than {_MOST_ROWS:,} runs and files, as is usual for a topic of transactions; restore a "
            "backup of the ledger instead"
        )
    by_run: dict[tuple[bool, str, int, int], list[Row]] = {}
    for row in rows:
        by_run.setdefault((row.released, row.generation, row.kafka_partition, row.run), []).append(row)
    runs: dict[bool, list[Run]] = {False: [], True: []}
    for (released, generation, kafka_partition, number), held in sorted(by_run.items()):
        source = KafkaPartition(generation, kafka_partition)
        runs[released].append(_build_run(source, held, logs.get(source, 0) if number == _BEFORE_THE_LOG else 0))
    return runs[False], runs[True]


def _split_read_and_released() -> Column:
    """Return an array of an ID's read line and released line, each as `line` with the flag `released`."""
    read = F.struct(F.lit(False).alias("released"), F.coalesce("read", "filed").alias("line"))
    released = F.struct(F.lit(True).alias("released"), F.col("filed").alias("line"))
    both = F.col("read").isNotNull() & F.col("filed").isNotNull()
    return F.when(both, F.array(read, released)).otherwise(F.array(read))


def _build_run(source: KafkaPartition, rows: Sequence[Row], reaches: int) -> Run:
    """Build a run from its rows, extended to the offset `reaches`, where the log begins, for the run before the log."""
    newest = max((row.max_event_ms for row in rows if row.max_event_ms is not None), default=None)
    oldest = min((row.oldest_ms for row in rows if row.oldest_ms is not None), default=None)
    return Run(
        OffsetRange(source, min(row.first for row in rows), max(reaches, *(row.last + 1 for row in rows))),
        tuple((row.place, Digest(row.records, *(getattr(row, half) for half in HALVES))) for row in rows),
        None if newest is None else from_ms(newest),
        None if oldest is None else from_ms(oldest),
    )
