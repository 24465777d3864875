"""Windows rebuilt from raw: one query over all their files, deduplicated by ID.

text lines -> parsed, hash checked -> interpreted by the contract of the ID -> placed in an elementary offset range
-> one shuffle by ID -> one row an ID and content, kept -> counts and digests by range; aggregates by key
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import reduce
from itertools import chain
from types import MappingProxyType

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from onceover.model.claim import ClaimedWindow
from onceover.model.conflict import ContestedId
from onceover.model.contract import Contracts
from onceover.model.digest import EMPTY, HALVES, Digest
from onceover.model.offsets import OffsetRange, coalesce
from onceover.model.own_offsets import OwnOffsets
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.model.unlanded import Unlanded
from onceover.model.window import from_ms, to_ms
from onceover.repair.contents import list_contested_ids, list_decided, list_strays, sum_by_piece
from onceover.repair.pieces import list_releases, split_ranges
from onceover.repair.released import add_releases
from onceover.spark import lines, parquet, text_files
from onceover.spark.aggregate import aggregate
from onceover.spark.contract_versions import interpret_each
from onceover.spark.range_join import looked_up
from onceover.spark.unlanded import collect_unlanded

_OF_FILE = ("planned_length", "is_compacted")
_RECORD = ("kafka_timestamp", "key", "headers", "value")
_LINE = ("hash", "contract", "columns")
_READ = ("intact", "generation", "kafka_partition", "offset", "event_ms", "kafka_timestamp", "key", "value", *HALVES)
_DECIDED = "generation string, kafka_partition int, offset bigint, kept string"


class Rebuild:
    """The rebuild of some windows. `collect` runs the query and keeps its rows until `close`.

    `files` are the paths of text, `compacted` those of Parquet; a window may have both. `whole` keeps all of each
    record, for `select_records`. With `alone`, an ID in two windows is no conflict: each window is summed by itself.
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
        alone: bool = False,
    ) -> None:
        self._contracts = contracts
        self.failures: dict[datetime, str] = {}
        self._claimed = {to_ms(c.window_start): c for c in claimed}
        landings = [landing for claim in claimed for landing in claim.landings]
        self._decided = sorted({decision.offsets for claim in claimed for decision in claim.decisions})
        pieces = split_ranges(landings, self._decided)
        self._ranges, self._exact = pieces.ranges, sorted(pieces.exact.items(), key=lambda item: item[0])
        self._released = list_releases(landings, chain(pieces.ranges, *pieces.exact.values()))
        self._accounted = accounted
        self._files = {to_ms(start): path for start, path in files.items()}
        self._compacted = {to_ms(start): path for start, path in compacted.items()}
        self._whole, self._alone = whole, alone
        self._present = pieces.list_versions(contracts.cutovers, self._released) or [len(contracts.versions)]
        self._spark, has_files = spark, bool(files or compacted)
        self._distinct = self._deduplicate().persist(StorageLevel.MEMORY_AND_DISK) if has_files else None

    def collect(self) -> dict[datetime, RebuiltWindow]:
        """Return what raw holds of each window; a window without a file has no lines."""
        rows = [] if self._distinct is None else sum_by_piece(self._distinct).collect()  # one row a window and range
        versions = list(range(1, len(self._contracts.versions) + 1))
        if self._present != versions and any(row.state in ("stray", "unaccounted") for row in rows):
            # By its own version, which no landing has, such a line may belong elsewhere: one of a release that died.
            self.close()
            self._present = versions
            self._distinct = self._deduplicate().persist(StorageLevel.MEMORY_AND_DISK)
            rows = sum_by_piece(self._distinct).collect()
        by_window: dict[int, list[Row]] = {ms: [] for ms in self._claimed}
        conflicts: Counter[int] = Counter()  # an ID in two windows counts for both
        misdated: Counter[int] = Counter()
        for row in rows:
            by_window[row.window_ms].append(row)
            for window_ms in {row.window_ms, row.last_window_ms}:
                conflicts[window_ms] += row.conflicts
                misdated[window_ms] += row.misdated
        planned = {ms: max((row.planned_length for row in of), default=0) for ms, of in by_window.items()}
        if not all(planned[ms] for ms in self._files):
            planned |= self._read_planned_lengths()
        kept, decided = self._distinct, self._decided
        contested = (
            list_contested_ids(kept) if kept is not None and any(row.conflicts or row.misdated for row in rows) else {}
        )
        contents = list_decided(kept, decided) if kept is not None and decided and rows else {}
        strays = list_strays(kept) if kept is not None and any(row.state == "stray" for row in rows) else {}
        return {
            from_ms(ms): replace(
                self._summarize(window_rows, planned[ms], conflicts[ms], misdated[ms], tuple(contested.get(ms, ()))),
                decided=tuple(contents.get(ms, ())),
                strays=coalesce(strays.get(ms, ())),
            )
            for ms, window_rows in by_window.items()
        }

    def collect_unlanded(self, held: Sequence[OffsetRange], own: OwnOffsets) -> tuple[dict[datetime, Unlanded], bool]:
        """Return the windows with intact lines that no landing accounts for, and whether these are all; Kafka's log
        holds the offsets `held`, and the pipeline's lines have its `own`."""
        if self._distinct is None:
            return {}, True
        found, is_whole = collect_unlanded(self._distinct.where("state = 'unaccounted'"), held, own)
        return {from_ms(window_ms): unlanded for window_ms, unlanded in found.items()}, is_whole

    def collect_beside(self, offsets: Sequence[OffsetRange]) -> dict[datetime, Unlanded]:
        """Return by window, as orphans, the lines with these accounted IDs, whichever landing's range holds them."""
        if self._distinct is None or not offsets:
            return {}
        add = looked_up(((piece, 1) for piece in offsets), "is_wanted")
        landed = self._distinct.where("state IN ('counts', 'stray')").transform(add)
        found, _ = collect_unlanded(landed.where("is_wanted IS NOT NULL"), ())
        return {from_ms(window_ms): unlanded for window_ms, unlanded in found.items()}

    def add_contested_ids(self, rebuilt: Mapping[datetime, RebuiltWindow]) -> dict[datetime, RebuiltWindow]:
        """Return the windows with all contested IDs, also those among the lines that no landing accounts for."""
        found = {} if self._distinct is None else list_contested_ids(self._distinct)
        return {start: replace(w, contested=tuple(found.get(to_ms(start), ()))) for start, w in rebuilt.items()}

    def aggregate(self) -> DataFrame | None:
        """Return window_ms, keys and measures of the records that count, over all windows; None if there is no file."""
        if self._distinct is None:
            return None
        return self._distinct.where("state = 'counts'").transform(aggregate(self._contracts.newest))

    def select_records(self, windows: Collection[datetime]) -> DataFrame:
        """Return the records of these windows that count, each once, as `parquet.write` takes them."""
        if self._distinct is None:
            raise ValueError("there is no file to take records from")
        in_windows = F.col("window_ms").isin([to_ms(start) for start in windows])
        counting = self._distinct.where((F.col("state") == "counts") & in_windows)
        return counting.withColumnRenamed("line_event_ms", "event_ms").select("*", "line.*")

    def close(self) -> None:
        if self._distinct is not None:
            with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
                self._distinct.unpersist()

    def _deduplicate(self) -> DataFrame:
        """Return a row for each ID and content, landed or not, with its number of lines; other lines share a row a
        state."""
        length = self._contracts.newest.window_minutes * 60_000
        read = (
            self._read()
            .withColumnRenamed("event_ms", "line_event_ms")
            .transform(add_releases(self._released, len(self._ranges), self._claimed, self._decided))
        )
        records = read.transform(interpret_each(self._contracts, self._present))
        belongs = F.col("line_event_ms") - F.pmod("line_event_ms", F.lit(length)) == F.col("window_ms")
        as_dated = F.col("line_event_ms").eqNullSafe(F.col("event_ms"))
        if "version" in records.columns:  # a record of no landing does not count, and only its line dates it
            as_dated = as_dated | ~F.col("version").isin(self._present)
        inputs = [name for name in records.columns if name.startswith(("k_", "m_"))]
        # A content that a person kept is adopted first if no landing accounts for its ID.
        is_orphan = F.col("kept").isNotNull() & ~F.col("is_accounted") & F.lit(bool(self._accounted))
        state = (
            F.when(~F.coalesce("intact", F.lit(False)), "corrupt")
            .when(~F.coalesce(belongs & as_dated, F.lit(False)), "misplaced")
            .when(F.col("kept") != lines.hash_content(), "rejected")
            .when(F.col("piece").isNotNull() & ~is_orphan, "counts")
            .otherwise(F.when(F.col("is_accounted"), "stray").otherwise("unaccounted"))
        )
        of_id = ("generation", "kafka_partition", "offset", "piece", *HALVES, "line_event_ms")
        counts = F.col("state") == "counts"
        content = (*inputs, *(_RECORD if self._whole else ()))
        of_line = [F.when(counts, F.struct(*_LINE)).alias("line")] if self._whole else []
        kept = (*_OF_FILE, "line") if self._whole else _OF_FILE
        named = F.col("state").isin("counts", "unaccounted", "rejected", "stray")
        return (
            records.transform(self._place())
            .transform(self._add_decisions())
            .withColumn("state", state)
            .withColumn("apart", F.when(~counts | F.lit(self._alone), F.col("window_ms")))
            .select("apart", "window_ms", "state", *_OF_FILE, *(F.when(named, F.col(c)).alias(c) for c in of_id),
                    *(F.when(counts, F.col(c)).alias(c) for c in content), *of_line)
            .repartition("apart", "generation", "kafka_partition", "offset")
            .groupBy("apart", "window_ms", "state", *of_id, *content)
            .agg(F.count(F.lit(1)).alias("lines"), *(F.max(c).alias(c) for c in kept))
        )  # fmt: skip

    def _read(self) -> DataFrame:
        """Return the parsed lines of all text files, and the records of all Parquet files as if they were lines."""
        columns = (*_READ, "headers", *_LINE) if self._whole else _READ
        frames: list[DataFrame] = []
        if self._files:
            text = text_files.read_text(self._spark, self._files.items(), *columns)
            frames.append(text.withColumn("is_compacted", F.lit(False)))
        if self._compacted:
            nothing_planned = {"planned_length": F.lit(0).cast("bigint"), "is_compacted": F.lit(True)}
            stored = parquet.read_parquet(self._spark, self._compacted).select("window_ms", *columns)
            frames.append(stored.withColumns(nothing_planned))
        return reduce(DataFrame.unionByName, frames)

    def _add_decisions(self) -> Callable[[DataFrame], DataFrame]:
        """Add `kept`, the hash of the content that a decision kept, null for nearly every record."""
        rows = {
            (d.source.generation, d.source.kafka_partition, d.offset, d.kept)
            for claim in self._claimed.values()
            for d in claim.decisions  # of one ID in several windows the same
        }
        if not rows:
            return lambda records: records.withColumn("kept", F.lit(None).cast("string"))
        decided = F.broadcast(self._spark.createDataFrame(sorted(rows), _DECIDED))
        return lambda records: records.join(decided, ["generation", "kafka_partition", "offset"], "left")

    def _place(self) -> Callable[[DataFrame], DataFrame]:
        """Add `piece`, the number of the elementary offset range or release that holds the ID, null for none, and
        `is_accounted`, whether any accounted range does."""
        first_exact = len(self._ranges) + len(self._released)
        of_exact = ((r, n) for n, (_, ranges) in enumerate(self._exact, first_exact) for r in ranges)
        pieces = looked_up(chain(((piece, n) for n, piece in enumerate(self._ranges)), of_exact), "piece")
        accounted = looked_up(((whole, 1) for whole in self._accounted), "is_accounted")

        def place(records: DataFrame) -> DataFrame:
            placed = records.transform(pieces).transform(accounted)
            piece = F.coalesce("released_piece", "piece") if self._released else F.col("piece")
            return placed.withColumns({"piece": piece, "is_accounted": F.col("is_accounted").isNotNull()})

        return place

    def _summarize(
        self, rows: Sequence[Row], planned: int, conflicts: int, misdated: int, contested: tuple[ContestedId, ...]
    ) -> RebuiltWindow:
        lines_by: dict[str, int] = {}
        ranges: list[RebuiltRange] = []
        compacted = EMPTY
        for row in rows:
            lines_by[row.state] = lines_by.get(row.state, 0) + row.lines
            if row.state == "counts":
                digest = Digest(row.records, *(getattr(row, h) for h in HALVES))
                ranges.append(self._find_range(row.piece, digest))
                compacted = compacted + digest if row.is_compacted else compacted
        return RebuiltWindow(
            lines=sum(lines_by.values()),
            corrupt_lines=lines_by.get("corrupt", 0),
            misplaced_lines=lines_by.get("misplaced", 0),
            unaccounted_lines=lines_by.get("unaccounted", 0),
            stray_lines=lines_by.get("stray", 0),
            conflicts=conflicts,
            misdated=misdated,
            frozen_length=planned,
            ranges=tuple(ranges),
            rejected_lines=lines_by.get("rejected", 0),
            contested=contested,
            compacted=compacted,
        )

    def _read_planned_lengths(self) -> dict[int, int]:
        """Return the bytes that Spark planned to read of each file; `collect` has no row of a window whose records all
        are in an earlier window too."""
        if self._distinct is None:
            return {}
        rows = self._distinct.groupBy("window_ms").agg(F.max("planned_length").alias("planned_length")).collect()
        return {row.window_ms: row.planned_length for row in rows}

    def _find_range(self, piece: int, digest: Digest) -> RebuiltRange:
        if piece < len(self._ranges):
            return RebuiltRange(self._ranges[piece], digest)
        if (number := piece - len(self._ranges)) < len(self._released):
            piece_of_release = self._released[number]
            return RebuiltRange(piece_of_release.span, digest, piece_of_release.release.batch_id)
        (landing_id, source), ranges = self._exact[number - len(self._released)]
        return RebuiltRange(OffsetRange(source, ranges[0].start, ranges[-1].end), digest, exact_id=landing_id)
