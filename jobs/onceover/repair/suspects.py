"""Suspicions settled: the lines of all windows that hold the suspected IDs are read together and compared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import reduce

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from onceover.context import PipelineContext
from onceover.errors import OnceoverError
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import Topic
from onceover.ledger import compactions, conflicts, suspicions
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.suspicions import Suspicion
from onceover.model.claim import ClaimedWindow
from onceover.model.conflict import Content
from onceover.model.digest import HALVES
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.window import Window, from_ms, to_ms
from onceover.repair.contents import hash_content
from onceover.spark import lines, parquet, text_files
from onceover.spark.range_join import looked_up
from onceover.spark.source import read_ranges

log = logging.getLogger(__name__)
_AT_ONCE = 10_000
_ID = ("generation", "kafka_partition", "offset")


def settle_suspicions(spark: SparkSession, context: PipelineContext) -> int:
    """Compare the contents of all suspected IDs; record those that have several as conflicts, and reopen their windows.

    Returns the number of contents in conflict. Costs one query of the ledger where nothing is suspected.
    """
    connection, pipeline = context.ledger, context.name
    found = suspicions.list_suspicions(connection, pipeline)
    if not found:
        return 0
    ranges = coalesce(each.offsets for each in found)
    records = _read_windows(spark, context, found, ranges)
    rows: list[Row] = []
    if records is not None:  # a row for each content in conflict
        rows = _compare(records, ranges, context).transform(_mark_newest(spark, context, ranges)).collect()
    with connection.transaction():
        for at in range(0, len(rows), _AT_ONCE):
            contents = map(_build_content, rows[at : at + _AT_ONCE])
            windows = conflicts.record_contents(connection, pipeline, contents)
            conflicts.reopen(connection, pipeline, windows)
        suspicions.settle(connection, found)
    log.info(
        "compared %d offsets that landed more than once: %d contents in conflict", sum(map(len, ranges)), len(rows)
    )
    return len(rows)


def record_conflicts(
    connection: Connection,
    registered: RegisteredPipeline,
    claimed: ClaimedWindow,
    rebuilt: RebuiltWindow,
    doubtful: Sequence[OffsetRange],
) -> None:
    """Record the conflicts that one window's files show, and suspect the doubtful offsets of landing in others too."""
    minutes = registered.contract.window_minutes
    seen = [
        Content(s.source, s.offset, name, Window.of(from_ms(ms), minutes).start, from_ms(ms))
        for s in rebuilt.suspects
        for name, ms in s.contents
        if ms is not None and len({name for name, _ in s.contents}) > 1
    ]
    with connection.transaction():
        windows = conflicts.record_contents(connection, registered.name, seen) if seen else set()
        # This window has just been judged; the others have not seen the conflict.
        conflicts.reopen(connection, registered.name, windows - {claimed.window_start})
    found = suspicions.suspect_everywhere(connection, registered.name, doubtful, claimed.window_start)
    suspicions.record_suspicions(connection, registered.name, found)


def _read_windows(
    spark: SparkSession, context: PipelineContext, found: Sequence[Suspicion], ranges: Sequence[OffsetRange]
) -> DataFrame | None:
    """Return the records of all files that may hold the suspected IDs; None without any file."""
    files, hdfs = context.files, context.address("hdfs").rstrip("/")
    windows = sorted({start for each in found for start in each.windows})
    days = suspicions.list_quarantine_days(context.ledger, context.name, ranges)
    text = [(to_ms(start), hdfs + files.layout.window_file(start)) for start in files.read_lengths(windows)]
    existing = set(files.list_quarantine_days()) if days else set()
    text += [(text_files.QUARANTINE, hdfs + files.layout.quarantine_file(day)) for day in days if day in existing]
    substitutes = compactions.list_substitutes(context.ledger, context.name, windows)
    compacted = {start: file for start, file in substitutes.items() if file is not None}
    found_parquet = {to_ms(start): hdfs + path for start, path in files.find_parquet_files(compacted).items()}
    frames: list[DataFrame] = []
    if text:
        frames.append(text_files.read_text(spark, text).where("intact").select("window_ms", *_ID, "event_ms", *_NAMED))
    if found_parquet:
        frames.append(parquet.read_parquet(spark, found_parquet).select("window_ms", *_ID, "event_ms", *_NAMED))
    return reduce(DataFrame.unionByName, frames) if frames else None


_NAMED = ("id", "content")


def _compare(records: DataFrame, ranges: Sequence[OffsetRange], context: PipelineContext) -> DataFrame:
    """Return a row for each content of the IDs that have several: window_ms, ID, event_ms and hash."""
    length = context.read_registration().contract.window_minutes * 60_000
    placed = F.col("event_ms") - F.pmod("event_ms", F.lit(length)) == F.col("window_ms")
    of_id = records.where(placed | (F.col("window_ms") == text_files.QUARANTINE))
    suspected = of_id.transform(looked_up(((piece, 1) for piece in ranges), "suspected")).where("suspected IS NOT NULL")
    contents = (
        suspected.transform(_add_hash)
        .groupBy(*_ID, "hash")
        .agg(F.max("window_ms").alias("window_ms"), F.max("event_ms").alias("event_ms"))
    )
    several = contents.groupBy(*_ID).agg(F.count(F.lit(1)).alias("contents")).where("contents > 1").drop("contents")
    return contents.join(several, list(_ID))


def _mark_newest(
    spark: SparkSession, context: PipelineContext, ranges: Sequence[OffsetRange]
) -> Callable[[DataFrame], DataFrame]:
    """Add `leader_epoch` to the contents that Kafka's log holds now; null for all if it cannot be read."""

    def add(contents: DataFrame) -> DataFrame:
        held = _list_held(context, ranges)
        if held is None:
            return contents.withColumn("leader_epoch", F.lit(None).cast("int"))
        source, pieces = held
        in_log = (
            read_ranges(spark, source, pieces)
            .withColumn("generation", F.lit(pieces[0].source.generation))
            .transform(lines.as_framed)
            .transform(_add_hash)
            .select(*_ID, "hash", "leader_epoch")
        )
        return contents.join(in_log, [*_ID, "hash"], "left")

    return add


def _list_held(context: PipelineContext, ranges: Sequence[OffsetRange]) -> tuple[KafkaSource, list[OffsetRange]] | None:
    """Return the parts of the ranges that the log holds, None if it holds none, or does not answer."""
    bootstrap, pipeline, policy = context.address("kafka"), context.pipeline, context.pipeline.ingest
    try:
        with closing(Topic(bootstrap, pipeline.contract.topic, policy.isolation, pipeline.kafka)) as topic:
            facts = topic.facts()
    except OnceoverError as error:
        log.warning("the contents that Kafka holds now are not known: %s", error)
        return None
    pieces = []
    for piece in ranges:
        partition = piece.source.kafka_partition
        if piece.source.generation == facts.generation and partition in facts.end:
            start, end = max(piece.start, facts.earliest[partition]), min(piece.end, facts.end[partition])
            pieces += [OffsetRange(piece.source, start, end)] if start < end else []
    source = KafkaSource(bootstrap, facts.topic, facts.topic_id, policy.isolation, pipeline.kafka)
    return (source, pieces) if pieces else None


def _add_hash(records: DataFrame) -> DataFrame:
    halves = dict(zip(HALVES, lines.digest_halves(F.col("id"), F.col("content")), strict=True))
    return records.withColumns(halves).withColumn("hash", hash_content())


def _build_content(row: Row) -> Content:
    in_window = row.window_ms != text_files.QUARANTINE
    return Content(
        KafkaPartition(row.generation, row.kafka_partition),
        row.offset,
        row.hash,
        from_ms(row.window_ms) if in_window else None,
        from_ms(row.event_ms) if in_window else None,
        row.leader_epoch,
    )
