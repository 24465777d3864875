"""IDs of intact lines that no landing accounts for, as runs: what is pending, and what nothing but raw holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from onceover.model.batch import LandingPart
from onceover.model.digest import EMPTY, HALVES, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.own_offsets import OwnOffsets
from onceover.model.unlanded import Unlanded
from onceover.spark.range_join import looked_up

_SOURCE = ("generation", "kafka_partition")
_MOST_RUNS = 1_000_000
_ORPHAN, _UNKNOWN, _PENDING, _BEYOND, _FOREIGN = range(5)
_KNOWN_OFFSET, _BEYOND_END = 1, 2


def collect_unlanded(
    unlanded: DataFrame, held: Sequence[OffsetRange], own: OwnOffsets, contracts: Collection[str]
) -> tuple[dict[int, Unlanded], bool]:
    """Return by `window_ms`, the number of a file of quarantine, what of these lines Kafka holds, in the offset ranges
    `held`, and what it does not; and whether that is all. Of more than a million runs it is only orphans; the rest is
    found once those are adopted.

    Takes window_ms, generation, kafka_partition, offset, contract and the digest's halves. An ID with several contents
    or in several files is in the first file, with one of them. One with a line of none of these `contracts` is no
    orphan: its contract is `unknown`.
    """
    own_places = [*((piece, _KNOWN_OFFSET) for piece in own.known), *((piece, _BEYOND_END) for piece in own.beyond)]
    kind = (
        F.when(F.col("is_held").isNotNull(), _PENDING)
        .when(F.col("own").isNull(), _FOREIGN)
        .when(F.col("own") == _BEYOND_END, _BEYOND)
        .when(F.col("unknown").isNotNull(), _UNKNOWN)
        .otherwise(_ORPHAN)
    )
    places = Window.partitionBy("window_ms", "kind", *_SOURCE).orderBy("offset")
    rows = (
        unlanded.groupBy(*_SOURCE, "offset")
        .agg(
            F.min("window_ms").alias("window_ms"),
            F.min(F.struct(*HALVES)).alias("digest"),
            F.min(F.when(~F.col("contract").isin(*contracts), F.col("contract"))).alias("unknown"),
        )
        .transform(looked_up(((piece, 1) for piece in held), "is_held"))
        .transform(looked_up(own_places, "own"))
        .withColumn("kind", kind)
        .withColumn("run", F.col("offset") - F.row_number().over(places))
        .withColumns({column: F.when(F.col("kind") != _FOREIGN, F.col(column)) for column in (*_SOURCE, "run")})
        .groupBy("window_ms", "kind", *_SOURCE, "run")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count(F.lit(1)).alias("records"),
            *(F.sum(f"digest.{half}").alias(half) for half in HALVES),
            F.min("unknown").alias("unknown"),
        )
        .orderBy("kind")
        .limit(_MOST_RUNS + 1)
        .collect()  # one row a run, orphans first, and one for all foreign lines of a window
    )
    is_whole = len(rows) <= _MOST_RUNS
    by_window: dict[int, list[Row]] = {}
    for row in rows[:_MOST_RUNS]:
        if is_whole or row.kind == _ORPHAN:
            by_window.setdefault(row.window_ms, []).append(row)
    return {window_ms: _sum_up(of_window) for window_ms, of_window in by_window.items()}, is_whole


def _sum_up(rows: Sequence[Row]) -> Unlanded:
    orphans = [row for row in rows if row.kind == _ORPHAN]
    digests: dict[KafkaPartition, Digest] = {}
    for row in orphans:
        source = _range(row).source
        digests[source] = digests.get(source, EMPTY) + Digest(row.records, *(getattr(row, half) for half in HALVES))
    return Unlanded(
        pending=coalesce(_range(row) for row in rows if row.kind == _PENDING),
        orphans=coalesce(map(_range, orphans)),
        parts=tuple(LandingPart(source, digest) for source, digest in sorted(digests.items())),
        beyond=coalesce(_range(row) for row in rows if row.kind == _BEYOND),
        foreign=sum(row.records for row in rows if row.kind == _FOREIGN),
        unknown=tuple(sorted({row.unknown for row in rows if row.kind == _UNKNOWN})),
    )


def _range(row: Row) -> OffsetRange:
    return OffsetRange(KafkaPartition(row.generation, row.kafka_partition), row.first, row.last + 1)
