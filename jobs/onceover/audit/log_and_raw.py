"""The records that Kafka's log and raw hold, as one set: a row for each ID and content, interpreted by its contract.

The ledger is asked for contract versions and releases only. So records that it does not know are here too.

log: offset ranges -> interpreted by version \\
                                               -> one shuffle by ID -> a row an ID and content, with where it is
raw: lines -> interpreted by version /
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from onceover.kafka.reader import KafkaSource
from onceover.model.contract import Contracts
from onceover.model.digest import HALVES
from onceover.model.log_history import NO_EPOCH
from onceover.model.offsets import OffsetRange
from onceover.model.record import ID_COLUMNS
from onceover.model.release import Release
from onceover.model.window import to_ms
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.contract_versions import add_missing_measures, interpret_each
from onceover.spark.interpret import interpret
from onceover.spark.range_join import looked_up
from onceover.spark.raw_lines import QUARANTINE, LineFile, read_raw_lines
from onceover.spark.source import read_ranges
from onceover.spark.windowing import find_window

_LINE = ("intact", "event_ms", *ID_COLUMNS, "leader_epoch", "kafka_timestamp", "key", "headers", "value", *HALVES)


def read_log(
    spark: SparkSession,
    source: KafkaSource,
    generation: str,
    ranges: Sequence[OffsetRange],
    contracts: Contracts,
    releases: Sequence[Release] = (),
    schemas: SchemaFiles | None = None,
) -> DataFrame:
    """Read the ranges from Kafka, each ID by its own contract. Reads them twice if IDs were released."""
    released_by = _add_released_version(releases)

    def under(version: int, pieces: Sequence[OffsetRange], released: int | None) -> DataFrame:
        records = read_ranges(spark, source, pieces).withColumn("generation", F.lit(generation))
        if releases:
            same = F.col("released_version").eqNullSafe(F.lit(released))
            records = records.transform(released_by).where(same)
        interpreted = interpret(contracts.versions[version - 1], contracts.list_poison(version), schemas)
        return records.transform(interpreted).transform(add_missing_measures(contracts.newest))

    def hold_under(version: int, pieces: Sequence[OffsetRange], released: int | None) -> Iterator[DataFrame]:
        for restated in sorted({version, *(each.version for each in contracts.restatements if each.version > version)}):
            part = under(restated, pieces, released)
            held = select_held(part, contracts, in_kafka=True, file_ms=F.lit(None).cast("bigint"))
            yield held.where(_find_restated("window_ms", contracts, version) == restated)

    pieces_by_version = contracts.cutovers.cut_by_version(ranges) or {len(contracts.versions): ()}
    read = [part for version, pieces in pieces_by_version.items() for part in hold_under(version, pieces, None)]
    for version in sorted({release.version for release in releases}):
        read += hold_under(version, ranges, version)
    return reduce(DataFrame.unionByName, read)


def _find_restated(column: str, contracts: Contracts, least: int = 1) -> Column:
    """Return the version that the window in that column was restated under, or a larger `least`."""
    within = (
        F.when(F.col(column).between(to_ms(each.start), to_ms(each.end) - 1), each.version)
        for each in contracts.restatements
    )
    return F.greatest(F.lit(least), F.lit(1), *within)


def read_raw(
    spark: SparkSession,
    address: str,
    files: Sequence[LineFile],
    contracts: Contracts,
    releases: Sequence[Release] = (),
    schemas: SchemaFiles | None = None,
) -> DataFrame | None:
    """Read the files, each ID by its own contract; damaged lines and lines in another window's file are left out.
    Returns None for no file. What was appended after they were listed is not read."""
    if not files:
        return None
    of_line = F.coalesce(find_window(contracts.newest.windowing), F.lit(QUARANTINE))
    read = read_raw_lines(spark, address, files, *_LINE).where(F.col("intact") & (of_line == F.col("window_ms")))
    records = (
        read.drop("event_ms")
        .withColumnRenamed("window_ms", "file_ms")
        .transform(_add_released_version(releases))
        .withColumn("restated_version", _find_restated("file_ms", contracts))
        .transform(interpret_each(contracts, schemas))
    )
    return select_held(records, contracts, in_kafka=False, file_ms=F.col("file_ms"))


def hold(sides: Sequence[DataFrame], low: int | None, high: int | None) -> DataFrame:
    """Join the log and raw, or one of them, by ID. Return a row for each ID and content: its window (QUARANTINE for
    none), whether it is `in_kafka`, its number of `lines`, their files, and the newest `leader_epoch` under which it
    was read; `log_epoch` is that of the record which the log has under the ID. `contents` and `raw_contents` count the
    rows of the ID with that epoch: an old and a new one are both right where the log was cut in between.

    With bounds, only IDs that have a content or a line in the windows of `[low, high)`, in ms.
    """
    records = reduce(DataFrame.unionByName, sides)
    inputs = [name for name in records.columns if name.startswith(("k_", "m_"))]
    is_window = F.col("file_ms") != QUARANTINE
    within = F.lit(True) if low is None else F.col("window_ms").between(low, F.lit(high) - 1)
    file_within = F.lit(False) if low is None else F.coalesce(F.col("first_file").between(low, F.lit(high) - 1), within)
    by_id = Window.partitionBy(*ID_COLUMNS)
    distinct = (
        records.withColumns({name: F.when(within, F.col(name)) for name in inputs})  # of other windows not needed
        .repartition(*ID_COLUMNS)
        .groupBy(*ID_COLUMNS, *HALVES, "window_ms", *inputs)
        .agg(
            F.max("in_kafka").alias("in_kafka"),
            F.coalesce(F.max("leader_epoch"), F.lit(NO_EPOCH)).alias("leader_epoch"),
            F.count(F.when(~F.col("in_kafka"), 1)).alias("lines"),
            F.min(F.when(is_window, F.col("file_ms"))).alias("first_file"),
            F.max(F.when(is_window, F.col("file_ms"))).alias("last_file"),
        )
    )
    if low is not None:
        wanted = F.max((within | file_within).cast("int")).over(by_id)
        distinct = distinct.withColumn("wanted", wanted).where("wanted = 1").drop("wanted")
    of_reading = Window.partitionBy(*ID_COLUMNS, "leader_epoch")
    return distinct.withColumns(
        {
            "contents": F.count(F.lit(1)).over(of_reading),
            "raw_contents": F.count(F.when(F.col("lines") > 0, 1)).over(of_reading),
            "log_epoch": F.max(F.when(F.col("in_kafka"), F.col("leader_epoch"))).over(by_id),
        }
    )


def select_held(records: DataFrame, contracts: Contracts, *, in_kafka: bool, file_ms: Column) -> DataFrame:
    """Return the columns that both sides share."""
    window_ms = F.coalesce(find_window(contracts.newest.windowing), F.lit(QUARANTINE))
    inputs = [name for name in records.columns if name.startswith(("k_", "m_"))]
    return records.select(
        *ID_COLUMNS,
        "leader_epoch",
        *HALVES,
        window_ms.cast("bigint").alias("window_ms"),
        file_ms.alias("file_ms"),
        F.lit(in_kafka).alias("in_kafka"),
        *inputs,
    )


def _add_released_version(releases: Iterable[Release]) -> Callable[[DataFrame], DataFrame]:
    """Add `released_version`, the contract version of IDs that were released, if there are any."""
    taken = [(offsets, release.version) for release in releases for offsets in release.ranges]
    return looked_up(taken, "released_version") if taken else lambda records: records
