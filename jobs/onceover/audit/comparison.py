"""Comparison of Kafka's log and raw as sets of records, window by window.

Each side is read by itself: the log through the reader and the contract, raw through its lines. One join by ID finds
the records that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from onceover.audit.result import Difference, Side, WindowAudit
from onceover.model.contract import Contracts
from onceover.model.digest import EMPTY, HALVES, Digest
from onceover.model.line import encode_id
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.release import Release
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


def read_log(
    spark: SparkSession,
    source: KafkaSource,
    ranges: Sequence[OffsetRange],
    contracts: Contracts,
    releases: Sequence[Release] = (),
) -> DataFrame:
    """Read the ranges from Kafka, each ID by its own contract: ID, `window_ms` (null: quarantine), the digest's halves,
    and the newest contract's keys and measures. Reads the log twice if IDs were released."""
    length, generation = contracts.newest.window_minutes * 60_000, ranges[0].source.generation
    released_by = looked_up(((r, rel.version) for rel in releases for r in rel.ranges), "released_version")

    def under(version: int, pieces: Sequence[OffsetRange], released: int | None) -> DataFrame:
        records = read_ranges(spark, source, pieces)
        if releases:
            same = F.col("released_version").eqNullSafe(F.lit(released))
            records = records.withColumn("generation", F.lit(generation)).transform(released_by).where(same)
        framed = (
            records.transform(interpret(contracts.versions[version - 1]))
            .transform(add_missing_measures(contracts.newest))
            .transform(lines.framed(generation))
            .withColumn("window_ms", F.col("event_ms") - F.pmod("event_ms", F.lit(length)))
        )
        inputs = [name for name in framed.columns if name.startswith(("k_", "m_"))]
        return framed.select(*_ID, "event_ms", "window_ms", *_digest_halves(), *inputs)

    parts = [under(version, pieces, None) for version, pieces in contracts.cutovers.cut_by_version(ranges).items()]
    parts += [under(version, ranges, version) for version in sorted({release.version for release in releases})]
    return reduce(DataFrame.unionByName, parts)


def read_raw(
    spark: SparkSession,
    places: Sequence[tuple[int, str]],
    compacted: Mapping[int, str],
    ranges: Sequence[OffsetRange],
    window_minutes: int,
    releases: Sequence[Release] = (),
) -> DataFrame:
    """Return one row for each ID of the ranges that the files hold, damaged and misplaced lines left out: its window
    (the least if several), the numbers of lines and of different contents, and the least halves. Released IDs are read
    from windows only.

    `places` are windows (or QUARANTINE) with the paths of their files, `compacted` windows with the paths of their
    Parquet files; a window may have both.
    """
    length = F.lit(window_minutes * 60_000)
    of_line = F.coalesce(F.col("event_ms") - F.pmod("event_ms", length), F.lit(QUARANTINE))
    needed = ("window_ms", "generation", *_ID, "event_ms", "id", "content")
    parts = [text_files.read_text(spark, places).where("intact").select(*needed)] if places else []
    if compacted:
        parts.append(parquet.read_parquet(spark, compacted).select(*needed))
    if not parts:
        return spark.createDataFrame([], _RAW)
    read = reduce(DataFrame.unionByName, parts).withColumnRenamed("window_ms", "r_window")
    if releases:
        leftover = F.col("is_released").isNotNull() & (F.col("r_window") == QUARANTINE)
        read = read.transform(looked_up(((r, 1) for rel in releases for r in rel.ranges), "is_released")).where(
            ~leftover
        )
    return (
        read.transform(looked_up(((r, 1) for r in ranges), "is_wanted"))
        .where(F.col("is_wanted").isNotNull() & (of_line == F.col("r_window")))
        .select(*_ID, "r_window", *_digest_halves())
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
    """The log joined with raw by ID, kept until `close`: `log` is from `read_log`, `raw` from `read_raw`.

    Of the log, compares only windows in `[low, high)`, in ms; without bounds all windows, and quarantine.
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
        in_range = F.lit(True) if self.low is None else F.col("k_window").between(self.low, F.lit(self.high) - 1)
        same = [F.col(f"k_{h}") == F.col(f"r_{h}") for h in HALVES]
        self._joined = (
            k.join(self.raw, [*_ID], "full_outer")
            .where(F.col("r_window").isNotNull() | in_range)
            .withColumn(
                "apart",
                F.when(F.col("r_window").isNull(), Difference.NOT_IN_RAW)
                .when(F.col("k_window").isNull(), Difference.NOT_IN_LOG)
                .when(F.col("contents") > 1, Difference.SEVERAL)
                .when(~(same[0] & same[1] & same[2] & same[3]), Difference.OTHER_CONTENT)
                .when(F.col("k_window") != F.col("r_window"), Difference.OTHER_WINDOW),
            )
            .persist(StorageLevel.MEMORY_AND_DISK)
        )

    def close(self) -> None:
        self._joined.unpersist()

    def windows(self) -> dict[datetime | None, WindowAudit]:
        """Return every window that either side holds; None is quarantine."""
        audits: dict[datetime | None, WindowAudit] = {}
        log, raw = self._side("k"), self._side("r")
        for key in sorted({*log, *raw}):
            log_side, raw_side = log.get(key, Side(EMPTY, 0)), raw.get(key, Side(EMPTY, 0))
            audits[_parse_window(key)] = WindowAudit(_parse_window(key), log_side, raw_side)
        for row in self._apart():
            ids = tuple(self._id(at) for at in row.ids)
            audits[_parse_window(row.window_ms)].differences[Difference(row.apart)] = (row.n, ids)
        return audits

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
        """Return by window and kind the number of IDs that differ, and the first of them."""
        places = F.array_distinct(F.array_compact(F.array("k_window", "r_window")))
        each = self._joined.where("apart IS NOT NULL").select("apart", *_ID, F.explode(places).alias("window_ms"))
        by_kind = Window.partitionBy("window_ms", "apart")
        return (
            each.withColumn("place", F.row_number().over(by_kind.orderBy(*_ID)))
            .withColumn("n", F.count(F.lit(1)).over(by_kind))
            .where(F.col("place") <= MOST_IDS)
            .groupBy("window_ms", "apart")
            .agg(F.max("n").alias("n"), F.sort_array(F.collect_list(F.struct(*_ID))).alias("ids"))
            .collect()  # at most MOST_IDS IDs a window and kind
        )

    def _id(self, at: Row) -> str:
        return encode_id(KafkaPartition(self.generation, at.kafka_partition), at.offset).decode()


def _digest_halves() -> list[Column]:
    return list(lines.digest_halves(F.col("id"), F.col("content")))


def _parse_window(window_ms: int) -> datetime | None:
    return None if window_ms == QUARANTINE else from_ms(window_ms)
