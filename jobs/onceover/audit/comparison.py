"""Kafka's log, raw and the aggregates held against each other as sets, window by window.

Each side is read by itself: the log through the reader and the contract, raw through its lines, the aggregates from
the database. One join by ID tells which records differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from onceover.audit.result import Apart, Side, WindowAudit
from onceover.model.claim import Release
from onceover.model.contract import Contracts
from onceover.model.digest import EMPTY, HALVES, Digest
from onceover.model.line import encode_id
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import from_ms
from onceover.spark import lines, parquet, text_files
from onceover.spark.contract_versions import add_missing_measures
from onceover.spark.interpret import interpret
from onceover.spark.range_join import looked_up
from onceover.spark.source import KafkaSource, read_ranges
from onceover.spark.text_files import QUARANTINE

MOST_IDS = 20
_ID = ("kafka_partition", "offset")
_RAW = "kafka_partition INT, offset BIGINT, r_window BIGINT, lines BIGINT, contents BIGINT, " + ", ".join(
    f"r_{h} BIGINT" for h in HALVES
)


def from_log(
    spark: SparkSession,
    source: KafkaSource,
    ranges: Sequence[OffsetRange],
    contracts: Contracts,
    releases: Sequence[Release] = (),
) -> DataFrame:
    """What Kafka delivers of the ranges, as the contract of each ID sees it: ID, `window_ms` (null: quarantine), the
    digest's halves, and what the newest contract counts. Where IDs were released, the log is read twice."""
    length, generation = contracts.newest.window_minutes * 60_000, ranges[0].source.generation
    taken = looked_up(((r, one.version) for one in releases for r in one.ranges), "released_version")

    def under(version: int, pieces: Sequence[OffsetRange], released: int | None) -> DataFrame:
        records = read_ranges(spark, source, pieces)
        if releases:
            same = F.col("released_version").eqNullSafe(F.lit(released))
            records = records.withColumn("generation", F.lit(generation)).transform(taken).where(same)
        framed = (
            records.transform(interpret(contracts.versions[version - 1]))
            .transform(add_missing_measures(contracts.newest))
            .transform(lines.framed(generation))
            .withColumn("window_ms", F.col("event_ms") - F.pmod("event_ms", F.lit(length)))
        )
        inputs = [name for name in framed.columns if name.startswith(("k_", "m_"))]
        return framed.select(*_ID, "event_ms", "window_ms", *_halves(), *inputs)

    found = [under(version, pieces, None) for version, pieces in contracts.cutovers.cut_by_version(ranges).items()]
    found += [under(version, ranges, version) for version in sorted({one.version for one in releases})]
    return reduce(DataFrame.unionByName, found)


def from_raw(
    spark: SparkSession,
    places: Sequence[tuple[int, str]],
    compacted: Mapping[int, str],
    ranges: Sequence[OffsetRange],
    window_minutes: int,
    releases: Sequence[Release] = (),
) -> DataFrame:
    """One row for each ID that the files hold within the ranges, damaged and misplaced lines left out: its window (the
    least if several), how many lines, how many different contents, and the least halves. What was released is looked
    for in windows only.

    `places` are windows, or QUARANTINE, with the paths of their files, `compacted` those with the paths of their
    Parquet files; a window may have both.
    """
    length = F.lit(window_minutes * 60_000)
    of_line = F.coalesce(F.col("event_ms") - F.pmod("event_ms", length), F.lit(QUARANTINE))
    needed = ("window_ms", "generation", *_ID, "event_ms", "id", "content")
    found = [text_files.read_text(spark, places).where("intact").select(*needed)] if places else []
    if compacted:
        found.append(parquet.read_parquet(spark, compacted).select(*needed))
    if not found:
        return spark.createDataFrame([], _RAW)
    read = reduce(DataFrame.unionByName, found).withColumnRenamed("window_ms", "r_window")
    if releases:
        gone = F.col("is_released").isNotNull() & (F.col("r_window") == QUARANTINE)
        read = read.transform(looked_up(((r, 1) for one in releases for r in one.ranges), "is_released")).where(~gone)
    return (
        read.transform(looked_up(((r, 1) for r in ranges), "is_wanted"))
        .where(F.col("is_wanted").isNotNull() & (of_line == F.col("r_window")))
        .select(*_ID, "r_window", *_halves())
        .groupBy(*_ID)
        .agg(
            F.min("r_window").alias("r_window"),
            F.count(F.lit(1)).alias("lines"),
            F.count_distinct("r_window", *HALVES).alias("contents"),
            *(F.min(h).alias(f"r_{h}") for h in HALVES),
        )
    )


@dataclass(slots=True)
class Comparison:
    """The log joined with raw by ID, kept until `close`: `log` is what `from_log` gives, `raw` what `from_raw` gives.

    Of the log only windows in `[low, high)` are wanted, in ms; without bounds all of them, and quarantine.
    """

    log: DataFrame
    raw: DataFrame
    generation: str
    low: int | None = None
    high: int | None = None
    _joined: DataFrame = field(init=False)

    def __post_init__(self) -> None:
        k = self.log.select(*_ID, F.coalesce("window_ms", F.lit(QUARANTINE)).alias("k_window"),
                            *(F.col(h).alias(f"k_{h}") for h in HALVES))  # fmt: skip
        asked = F.lit(True) if self.low is None else F.col("k_window").between(self.low, F.lit(self.high) - 1)
        same = [F.col(f"k_{h}") == F.col(f"r_{h}") for h in HALVES]
        self._joined = (
            k.join(self.raw, [*_ID], "full_outer")
            .where(F.col("r_window").isNotNull() | asked)
            .withColumn(
                "apart",
                F.when(F.col("r_window").isNull(), Apart.NOT_IN_RAW)
                .when(F.col("k_window").isNull(), Apart.NOT_IN_LOG)
                .when(F.col("contents") > 1, Apart.SEVERAL)
                .when(~(same[0] & same[1] & same[2] & same[3]), Apart.OTHER_CONTENT)
                .when(F.col("k_window") != F.col("r_window"), Apart.OTHER_WINDOW),
            )
            .persist(StorageLevel.MEMORY_AND_DISK)
        )

    def close(self) -> None:
        self._joined.unpersist()

    def windows(self) -> dict[datetime | None, WindowAudit]:
        """Every window that either side knows; None is quarantine."""
        found: dict[datetime | None, WindowAudit] = {}
        log, raw = self._side("k"), self._side("r")
        for key in sorted({*log, *raw}):
            log_side, raw_side = log.get(key, Side(EMPTY, 0)), raw.get(key, Side(EMPTY, 0))
            found[_start(key)] = WindowAudit(_start(key), log_side, raw_side)
        for row in self._apart():
            ids = tuple(self._id(at) for at in row.ids)
            found[_start(row.window_ms)].apart[Apart(row.apart)] = (row.n, ids)
        return found

    def _side(self, side: str) -> dict[int, Side]:
        rows = (
            self._joined.where(F.col(f"{side}_window").isNotNull())
            .groupBy(F.col(f"{side}_window").alias("window_ms"))
            .agg(
                F.count(F.lit(1)).alias("records"),
                F.coalesce(F.sum("lines"), F.lit(0)).alias("lines"),
                *(F.sum(f"{side}_{h}").alias(h) for h in HALVES),
            )
            .collect()  # one row a window
        )
        return {
            row.window_ms: Side(Digest(row.records, *(getattr(row, h) for h in HALVES)),
                                row.lines if side == "r" else row.records)
            for row in rows
        }  # fmt: skip

    def _apart(self) -> list[Row]:
        """Per window and kind, how many IDs differ, and the first of them."""
        places = F.array_distinct(F.array_compact(F.array("k_window", "r_window")))
        each = self._joined.where("apart IS NOT NULL").select("apart", *_ID, F.explode(places).alias("window_ms"))
        by_kind = Window.partitionBy("window_ms", "apart")
        return (
            each.withColumn("place", F.row_number().over(by_kind.orderBy(*_ID)))
            .withColumn("n", F.count(F.lit(1)).over(by_kind))
            .where(F.col("place") <= MOST_IDS)
            .groupBy("window_ms", "apart")
            .agg(F.max("n").alias("n"), F.sort_array(F.collect_list(F.struct(*_ID))).alias("ids"))
            .collect()  # at most that many IDs a window and kind
        )

    def _id(self, at: Row) -> str:
        return encode_id(KafkaPartition(self.generation, at.kafka_partition), at.offset).decode()


def _halves() -> list[Column]:
    return list(lines.digest_halves(F.col("id"), F.col("content")))


def _start(window_ms: int) -> datetime | None:
    return None if window_ms == QUARANTINE else from_ms(window_ms)
