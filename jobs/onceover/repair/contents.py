"""Contents of IDs that need a person: those in conflict, those decided about, and those of other windows' landings.

All take the rows of `Rebuild`: one an ID and content, with its window and state.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceover.model.conflict import ContestedId
from onceover.model.digest import HALVES
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import DecidedContent
from onceover.spark import lines
from onceover.spark.range_join import looked_up

_OFFSET = ("generation", "kafka_partition", "offset")
_RECORD = ("apart", "state", *_OFFSET)  # of records that count, in any file
_MOST_CONTESTED = 10_000
_MOST_STRAYS = 10_000


def sum_by_piece(distinct: DataFrame) -> DataFrame:
    """Return counts and digests by window, state and piece. Rows of an ID lie together: no second shuffle."""
    counts = F.col("state") == "counts"
    by_id = distinct.groupBy(*_RECORD).agg(
        F.min(F.struct("window_ms", "planned_length")).alias("first"),
        F.max("window_ms").alias("last_window_ms"),
        F.max("piece").alias("piece"),
        F.sum("lines").alias("lines"),
        *(F.min(h).alias(h) for h in HALVES),
        F.when(counts, F.greatest(*((F.min(h) != F.max(h)).cast("int") for h in HALVES))).alias("conflict"),
        F.when(counts, (F.min("line_event_ms") != F.max("line_event_ms")).cast("int")).alias("misdated"),
        F.max("is_compacted").alias("is_compacted"),
    )
    place = (F.col("first.window_ms").alias("window_ms"), "last_window_ms", "state", "piece", "is_compacted")
    return by_id.groupBy(*place).agg(
        F.max("first.planned_length").alias("planned_length"),
        F.sum("lines").alias("lines"),
        F.count(F.lit(1)).alias("records"),
        *(F.coalesce(F.sum(h), F.lit(0)).alias(h) for h in HALVES),
        F.coalesce(F.sum("conflict"), F.lit(0)).alias("conflicts"),
        F.coalesce(F.sum("misdated"), F.lit(0)).alias("misdated"),
    )


def list_contested_ids(distinct: DataFrame) -> dict[int, list[ContestedId]]:
    """Return by window the first IDs with several contents or event times, each with all of them."""
    rows = (
        distinct.where("state IN ('counts', 'unaccounted')")
        .groupBy("generation", "kafka_partition", "offset")
        .agg(
            F.collect_set("window_ms").alias("windows"),
            F.collect_set(F.struct(lines.hash_content().alias("hash"), "line_event_ms")).alias("contents"),
        )
        .where(F.size("contents") > 1)
        .orderBy("generation", "kafka_partition", "offset")
        .limit(_MOST_CONTESTED)
        .collect()
    )
    by_window: dict[int, list[ContestedId]] = {}
    for row in rows:
        contents = tuple(sorted((c["hash"], c["line_event_ms"]) for c in row.contents))
        contested = ContestedId(KafkaPartition(row.generation, row.kafka_partition), row.offset, contents)
        for window_ms in row.windows:
            by_window.setdefault(window_ms, []).append(contested)
    return by_window


def list_decided(distinct: DataFrame, decided: Iterable[OffsetRange]) -> dict[int, list[DecidedContent]]:
    """Return by window the contents of decided IDs, those that were kept and those that were rejected."""
    rows = (
        distinct.where("state IN ('counts', 'rejected')")
        .transform(looked_up(((piece, 1) for piece in decided), "is_decided"))
        .where("is_decided IS NOT NULL")
        .select("window_ms", "state", *_OFFSET, lines.hash_content().alias("hash"))
        .distinct()
        .collect()  # as many as a person has decided about
    )
    by_window: dict[int, list[DecidedContent]] = {}
    for row in rows:
        offsets = OffsetRange(KafkaPartition(row.generation, row.kafka_partition), row.offset, row.offset + 1)
        by_window.setdefault(row.window_ms, []).append(DecidedContent(offsets, row.hash, row.state == "counts"))
    return by_window


def list_strays(distinct: DataFrame) -> dict[int, list[OffsetRange]]:
    """Return by window the offsets of lines whose ID landed, but in none of the claimed windows."""
    rows = distinct.where("state = 'stray'").select("window_ms", *_OFFSET).distinct().limit(_MOST_STRAYS)
    by_window: dict[int, list[OffsetRange]] = {}
    for row in rows.collect():
        source = KafkaPartition(row.generation, row.kafka_partition)
        by_window.setdefault(row.window_ms, []).append(OffsetRange(source, row.offset, row.offset + 1))
    return by_window
