"""Windows rebuilt from raw: one query over all their files, deduplicated on the ID, without Python in the plan.

text lines -> parsed, CRC checked -> interpreted by the contract of the ID -> placed in an elementary offset range
-> one shuffle by ID -> one row an ID and content, kept -> counts and digests by range; aggregates by key
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import reduce
from types import MappingProxyType

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from onceover.model.claim import ClaimedLanding, ClaimedWindow, RebuiltRange, RebuiltWindow, Release, Suspect
from onceover.model.contract import Contracts
from onceover.model.digest import EMPTY, HALVES, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import from_ms, to_ms
from onceover.repair.proof import elementary_ranges
from onceover.spark import lines, parquet, text_files
from onceover.spark.contract_versions import interpret_each
from onceover.spark.interpret import aggregate
from onceover.spark.range_join import looked_up

_ID = ("apart", "state", "generation", "kafka_partition", "offset")  # of what counts, whichever window it stands in
_OF_FILE = ("planned_length", "is_compacted")
_RECORD = ("kafka_timestamp", "key", "headers", "value")
_DECIDED = "generation string, kafka_partition int, offset bigint, kept string"
_MOST_SUSPECTS = 20


class Rebuild:
    """The rebuilding of some windows. `results` runs the query and keeps its rows until `close`.

    `files` are the paths of text, `compacted` those of Parquet; a window may have both. `whole` ones are kept with all
    that there is of each record, for `records`.
    """

    def __init__(
        self,
        spark: SparkSession,
        contracts: Contracts,
        claimed: Sequence[ClaimedWindow],
        accounted: Sequence[OffsetRange],
        files: Mapping[datetime, str],
        compacted: Mapping[datetime, str] = MappingProxyType({}),
        *,
        whole: bool = False,
    ) -> None:
        self._contracts = contracts
        self._claimed = {to_ms(c.window_start): c for c in claimed}
        landings = [landing for one in claimed for landing in one.landings]
        self._ranges = elementary_ranges(landings)
        self._released = _released(landings)
        self._accounted = accounted
        self._files = {to_ms(start): path for start, path in files.items()}
        self._compacted = {to_ms(start): path for start, path in compacted.items()}
        self._carried = _RECORD if whole else ()
        there = bool(files or compacted)
        self._distinct = self._deduplicated(spark).persist(StorageLevel.MEMORY_AND_DISK) if there else None

    def results(self) -> dict[datetime, RebuiltWindow]:
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
        present = {*self._contracts.cutovers.cut_by_version(self._ranges), *(one.version for _, one in self._released)}
        read = self._read(spark).withColumnRenamed("event_ms", "line_event_ms").transform(self._of_releases())
        records = read.transform(interpret_each(self._contracts, sorted(present) or [len(self._contracts.versions)]))
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
        halves = dict(zip(HALVES, lines.digest_halves(F.col("id"), F.col("content")), strict=True))
        of_id = ("generation", "kafka_partition", "offset", "piece", *halves)
        content = (*of_id, "line_event_ms", *inputs, *self._carried)
        counts = F.col("state") == "counts"
        return (
            records.withColumns(halves)
            .transform(self._placed())
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
        found: list[DataFrame] = []
        if self._files:
            text = text_files.read_text(spark, self._files.items()).transform(lines.as_records)
            found.append(text.withColumn("is_compacted", F.lit(False)))
        if self._compacted:
            nothing_planned = {"planned_length": F.lit(0).cast("bigint"), "is_compacted": F.lit(True)}
            found.append(parquet.read_parquet(spark, self._compacted).withColumns(nothing_planned))
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

    def _of_releases(self) -> Callable[[DataFrame], DataFrame]:
        """Adds the `released_piece` of IDs that were released, and the version that they have: `released_version`."""
        if not self._released:
            return lambda records: records
        pieces = list(enumerate(self._released, start=len(self._ranges)))
        taken = ((r, n) for n, (whole, release) in pieces for r in release.ranges if r.source == whole.source)
        versions = [F.when(F.col("released_piece") == n, F.lit(release.version)) for n, (_, release) in pieces]
        return lambda records: records.transform(looked_up(taken, "released_piece")).withColumn(
            "released_version", F.coalesce(*versions)
        )

    def _placed(self) -> Callable[[DataFrame], DataFrame]:
        """Adds `piece`, the number of the elementary offset range or of the release that holds the ID, null for none,
        and whether it `is_accounted` at all."""
        pieces = looked_up(((piece, n) for n, piece in enumerate(self._ranges)), "piece")
        accounted = looked_up(((whole, 1) for whole in self._accounted), "is_accounted")

        def place(records: DataFrame) -> DataFrame:
            placed = records.transform(pieces).transform(accounted)
            piece = F.coalesce("released_piece", "piece") if self._released else F.col("piece")
            return placed.withColumns({"piece": piece, "is_accounted": F.col("is_accounted").isNotNull()})

        return place

    def _sums(self, distinct: DataFrame) -> DataFrame:
        """Counts and digests by window, state and elementary range. The ID's rows lie together: no second shuffle."""
        by_id = distinct.groupBy(*_ID).agg(
            F.min(F.struct("window_ms", "planned_length")).alias("first"),
            F.max("window_ms").alias("last_window_ms"),
            F.max("piece").alias("piece"),
            F.sum("lines").alias("lines"),
            *(F.min(h).alias(h) for h in HALVES),
            F.greatest(*((F.min(h) != F.max(h)).cast("int") for h in HALVES)).alias("conflict"),
            (F.min("line_event_ms") != F.max("line_event_ms")).cast("int").alias("misdated"),
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

    def _rebuilt(
        self, rows: Sequence[Row], conflicts: int, misdated: int, suspects: tuple[Suspect, ...]
    ) -> RebuiltWindow:
        lines_by: dict[str, int] = {}
        ranges: list[RebuiltRange] = []
        planned, compacted = 0, EMPTY
        for row in rows:
            lines_by[row.state] = lines_by.get(row.state, 0) + row.lines
            planned = max(planned, row.planned_length)
            if row.state == "counts":
                digest = Digest(row.records, *(getattr(row, h) for h in HALVES))
                ranges.append(self._range(row.piece, digest))
                compacted = compacted + digest if row.is_compacted else compacted
        return RebuiltWindow(
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

    def _range(self, piece: int, digest: Digest) -> RebuiltRange:
        if piece < len(self._ranges):
            return RebuiltRange(self._ranges[piece], digest)
        offsets, release = self._released[piece - len(self._ranges)]
        return RebuiltRange(offsets, digest, release.batch_id)


def _released(landings: Iterable[ClaimedLanding]) -> list[tuple[OffsetRange, Release]]:
    """Each release with each Kafka partition that it took something from, from the first to the last ID."""
    found: dict[tuple[int, OffsetRange], Release] = {}
    for one in landings:
        if one.release:
            found |= {(one.release.batch_id, offsets): one.release for offsets, _ in one.parts}
    return [(offsets, release) for (_, offsets), release in sorted(found.items(), key=lambda item: item[0])]


def _content_hash() -> Column:
    """The record's two hashes as 32 hex digits: what a person names a content by."""
    return F.lower(F.concat(*(F.lpad(F.hex(h), 8, "0") for h in HALVES)))
