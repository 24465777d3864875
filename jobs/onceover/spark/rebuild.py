"""Windows rebuilt from raw: one query over all their files, deduplicated on the ID, without Python in the plan.

text lines -> parsed, CRC checked -> interpreted by the contract of the ID -> placed in an elementary offset range
-> one shuffle by ID -> one row an ID and content, kept -> counts and digests by range; aggregates by key
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import reduce
from types import MappingProxyType

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from onceover.cutovers import Contracts
from onceover.digest import EMPTY, Digest
from onceover.offsets import KafkaPartition, OffsetRange
from onceover.repair import Claimed, RangeRebuilt, Rebuilt, Suspect, elementary_ranges
from onceover.spark import lines, parquet
from onceover.spark.interpret import aggregate
from onceover.spark.versions import interpret_each
from onceover.window import from_ms, to_ms

_HALVES = ("high1", "low1", "high2", "low2")
_ID = ("apart", "state", "generation", "kafka_partition", "offset")  # of what counts, whichever window it stands in
_OF_FILE = ("planned_length", "is_compacted")
_RECORD = ("kafka_timestamp", "key", "headers", "value")
_PIECES = "generation string, kafka_partition int, slot bigint, piece int, low bigint, high bigint"
_DECIDED = "generation string, kafka_partition int, offset bigint, kept string"
_MOST_SUSPECTS = 20
_ACCOUNTED = "generation string, kafka_partition int, low bigint, high bigint"


class Rebuild:
    """The rebuilding of some windows. `results` runs the query and keeps its rows until `close`.

    `files` are the paths of text, `compacted` those of Parquet; a window may have both. `whole` ones are kept with all
    that there is of each record, for `records`.
    """

    def __init__(
        self,
        spark: SparkSession,
        contracts: Contracts,
        claimed: Sequence[Claimed],
        accounted: Sequence[OffsetRange],
        files: Mapping[datetime, str],
        compacted: Mapping[datetime, str] = MappingProxyType({}),
        *,
        whole: bool = False,
    ) -> None:
        self._contracts = contracts
        self._claimed = {to_ms(c.window_start): c for c in claimed}
        self._pieces = elementary_ranges(landing for one in claimed for landing in one.landings)
        self._accounted = accounted
        self._files = {to_ms(start): path for start, path in files.items()}
        self._compacted = {to_ms(start): path for start, path in compacted.items()}
        self._carried = _RECORD if whole else ()
        there = bool(files or compacted)
        self._distinct = self._deduplicated(spark).persist(StorageLevel.MEMORY_AND_DISK) if there else None

    def results(self) -> dict[datetime, Rebuilt]:
        """What raw says about each window; a window without a file has no lines."""
        rows = [] if self._distinct is None else self._sums(self._distinct).collect()  # one row a window and range
        by_window: dict[int, list[Row]] = {ms: [] for ms in self._claimed}
        conflicts: Counter[int] = Counter()  # of one ID in two windows, both
        misdated: Counter[int] = Counter()
        for row in rows:
            by_window[row.window_ms].append(row)
            for window_ms in {row.window_ms, row.last_window_ms}:
                conflicts[window_ms] += row.conflicts
                misdated[window_ms] += row.misdated
        suspects = self._suspects() if any(row.conflicts or row.misdated for row in rows) else {}
        return {
            from_ms(ms): self._rebuilt(found, conflicts[ms], misdated[ms], tuple(suspects.get(ms, ())))
            for ms, found in by_window.items()
        }

    def aggregated(self) -> DataFrame | None:
        """window_ms, keys and measures of the records that count, over all windows; None where there is no file."""
        if self._distinct is None:
            return None
        return self._distinct.where("state = 'counts'").transform(aggregate(self._contracts.newest))

    def records(self, windows: Collection[datetime]) -> DataFrame:
        """The records that count, of these windows, each once: what `parquet.write` takes."""
        if self._distinct is None:
            raise ValueError("there is no file to take records from")
        wanted = F.col("window_ms").isin([to_ms(start) for start in windows])
        counting = self._distinct.where((F.col("state") == "counts") & wanted)
        return counting.withColumnRenamed("line_event_ms", "event_ms")

    def close(self) -> None:
        if self._distinct is not None:
            with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
                self._distinct.unpersist()

    def _deduplicated(self, spark: SparkSession) -> DataFrame:
        """One row for each ID and content, with how many lines said so; lines that do not count share a row a state."""
        length = self._contracts.newest.window_minutes * 60_000
        present = list(self._contracts.cutovers.by_version(self._pieces)) or [len(self._contracts.versions)]
        read = self._read(spark).withColumnRenamed("event_ms", "line_event_ms")
        records = read.transform(interpret_each(self._contracts, present))
        belongs = F.col("line_event_ms") - F.pmod("line_event_ms", F.lit(length)) == F.col("window_ms")
        as_dated = F.col("line_event_ms").eqNullSafe(F.col("event_ms"))
        if "version" in records.columns:  # what no landing holds does not count, and only its line says when it was
            as_dated = as_dated | ~F.col("version").isin(present)
        inputs = [name for name in records.columns if name.startswith(("k_", "m_"))]
        state = (
            F.when(~F.coalesce("intact", F.lit(False)), "corrupt")
            .when(~F.coalesce(belongs & as_dated, F.lit(False)), "misplaced")
            .when(F.col("kept") != _content_hash(), "rejected")
            .when(F.col("piece").isNotNull(), "counts")
            .otherwise(F.when(F.col("is_accounted"), "stray").otherwise("unaccounted"))
        )
        halves = dict(zip(_HALVES, lines.digest_halves(F.col("id"), F.col("content")), strict=True))
        of_id = ("generation", "kafka_partition", "offset", "piece", *halves)
        content = (*of_id, "line_event_ms", *inputs, *self._carried)
        counts = F.col("state") == "counts"
        return (
            records.withColumns(halves)
            .transform(self._placed(spark))
            .transform(self._decided(spark))
            .withColumn("state", state)
            .withColumn("apart", F.when(~counts, F.col("window_ms")))
            .select("apart", "window_ms", "state", *_OF_FILE, *(F.when(counts, F.col(c)).alias(c) for c in content))
            .repartition("apart", "generation", "kafka_partition", "offset")
            .groupBy("apart", "window_ms", "state", *content)
            .agg(F.count(F.lit(1)).alias("lines"), *(F.max(c).alias(c) for c in _OF_FILE))
        )

    def _read(self, spark: SparkSession) -> DataFrame:
        """The lines of all files with what they hold, and the records of all Parquet files as if they were lines."""
        places = spark.createDataFrame(
            [(path, ms) for ms, path in self._files.items()], "file_path string, window_ms bigint"
        )
        found: list[DataFrame] = []
        if self._files:
            found.append(
                spark.read.text(list(self._files.values()), lineSep="\n")
                .select("value", F.col("_metadata.file_path"), F.col("_metadata.file_size").alias("planned_length"))
                .where(lines.not_empty())
                .join(F.broadcast(places), "file_path")
                .drop("file_path")
                .transform(lines.parsed())
                .transform(lines.as_records)
                .withColumn("is_compacted", F.lit(False))
            )
        if self._compacted:
            nothing_planned = {"planned_length": F.lit(0).cast("bigint"), "is_compacted": F.lit(True)}
            found.append(parquet.read(spark, self._compacted).withColumns(nothing_planned))
        return reduce(DataFrame.unionByName, found)

    def _decided(self, spark: SparkSession) -> Callable[[DataFrame], DataFrame]:
        """Adds `kept`, the hash of the content that was decided on, null for nearly every record."""
        rows = [
            (d.source.generation, d.source.kafka_partition, d.offset, d.kept)
            for one in self._claimed.values()
            for d in one.decisions
        ]
        if not rows:
            return lambda records: records.withColumn("kept", F.lit(None).cast("string"))
        decided = F.broadcast(spark.createDataFrame(rows, _DECIDED))
        return lambda records: records.join(decided, ["generation", "kafka_partition", "offset"], "left")

    def _placed(self, spark: SparkSession) -> Callable[[DataFrame], DataFrame]:
        """Adds `piece`, the index of the elementary offset range that holds the offset, null for none, and whether it
        `is_accounted` at all.

        A range join by slots: each piece is listed under every slot of `width` offsets that it touches, so that the
        join is an equality that Spark hashes. With this width there are at most six rows a piece on average.
        """
        width = max(1, sum(map(len, self._pieces)) // (4 * max(1, len(self._pieces))))
        rows = [
            (piece.source.generation, piece.source.kafka_partition, slot, index, piece.start, piece.end)
            for index, piece in enumerate(self._pieces)
            for slot in range(piece.start // width, (piece.end - 1) // width + 1)
        ]
        pieces = F.broadcast(spark.createDataFrame(rows, _PIECES)).alias("p")
        wholes = [(r.source.generation, r.source.kafka_partition, r.start, r.end) for r in self._accounted]
        accounted = F.broadcast(spark.createDataFrame(wholes, _ACCOUNTED)).alias("a")
        source = ("generation", "kafka_partition")

        def holds(ranges: str, *equal: str) -> list[Column]:
            within = (F.col("r.offset") >= F.col(f"{ranges}.low")) & (F.col("r.offset") < F.col(f"{ranges}.high"))
            return [*(F.col(f"r.{name}") == F.col(f"{ranges}.{name}") for name in equal), within]

        def place(records: DataFrame) -> DataFrame:
            return (
                records.withColumn("slot", F.floor(F.col("offset") / F.lit(width)))
                .alias("r")
                .join(pieces, holds("p", *source, "slot"), "left")
                .join(accounted, holds("a", *source), "left")
                .select("r.*", "p.piece", F.col("a.low").isNotNull().alias("is_accounted"))
            )

        return place

    def _sums(self, distinct: DataFrame) -> DataFrame:
        """Counts and digests by window, state and elementary range. The ID's rows lie together: no second shuffle."""
        by_id = distinct.groupBy(*_ID).agg(
            F.min(F.struct("window_ms", "planned_length")).alias("first"),
            F.max("window_ms").alias("last_window_ms"),
            F.max("piece").alias("piece"),
            F.sum("lines").alias("lines"),
            *(F.min(h).alias(h) for h in _HALVES),
            F.greatest(*((F.min(h) != F.max(h)).cast("int") for h in _HALVES)).alias("conflict"),
            (F.min("line_event_ms") != F.max("line_event_ms")).cast("int").alias("misdated"),
            F.max("is_compacted").alias("is_compacted"),
        )
        place = (F.col("first.window_ms").alias("window_ms"), "last_window_ms", "state", "piece", "is_compacted")
        return by_id.groupBy(*place).agg(
            F.max("first.planned_length").alias("planned_length"),
            F.sum("lines").alias("lines"),
            F.count(F.lit(1)).alias("records"),
            *(F.coalesce(F.sum(h), F.lit(0)).alias(h) for h in _HALVES),
            F.coalesce(F.sum("conflict"), F.lit(0)).alias("conflicts"),
            F.coalesce(F.sum("misdated"), F.lit(0)).alias("misdated"),
        )

    def _suspects(self) -> dict[int, list[Suspect]]:
        """By window, the first IDs that have several contents or event times, with all that raw holds of them."""
        if self._distinct is None:
            return {}
        found = (
            self._distinct.where("state = 'counts'")
            .groupBy("generation", "kafka_partition", "offset")
            .agg(
                F.collect_set("window_ms").alias("windows"),
                F.collect_set(F.struct(_content_hash().alias("hash"), "line_event_ms")).alias("contents"),
            )
            .where(F.size("contents") > 1)
            .orderBy("generation", "kafka_partition", "offset")
            .limit(_MOST_SUSPECTS)
            .collect()
        )
        by_window: dict[int, list[Suspect]] = {}
        for row in found:
            contents = tuple(sorted((c["hash"], c["line_event_ms"]) for c in row.contents))
            suspect = Suspect(KafkaPartition(row.generation, row.kafka_partition), row.offset, contents)
            for window_ms in row.windows:
                by_window.setdefault(window_ms, []).append(suspect)
        return by_window

    def _rebuilt(self, rows: Sequence[Row], conflicts: int, misdated: int, suspects: tuple[Suspect, ...]) -> Rebuilt:
        lines_by: dict[str, int] = {}
        ranges: list[RangeRebuilt] = []
        planned, compacted = 0, EMPTY
        for row in rows:
            lines_by[row.state] = lines_by.get(row.state, 0) + row.lines
            planned = max(planned, row.planned_length)
            if row.state == "counts":
                digest = Digest(row.records, *(getattr(row, h) for h in _HALVES))
                ranges.append(RangeRebuilt(self._pieces[row.piece], digest))
                compacted = compacted + digest if row.is_compacted else compacted
        return Rebuilt(
            lines=sum(lines_by.values()),
            corrupt_lines=lines_by.get("corrupt", 0),
            misplaced_lines=lines_by.get("misplaced", 0),
            unaccounted_lines=lines_by.get("unaccounted", 0),
            stray_lines=lines_by.get("stray", 0),
            conflicts=conflicts,
            misdated=misdated,
            planned_length=planned,
            ranges=tuple(ranges),
            rejected_lines=lines_by.get("rejected", 0),
            suspects=suspects,
            compacted=compacted,
        )


def _content_hash() -> Column:
    """The record's two hashes as 32 hex digits: what a person names a content by."""
    return F.lower(F.concat(*(F.lpad(F.hex(h), 8, "0") for h in _HALVES)))
