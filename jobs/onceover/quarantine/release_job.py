"""Records that were quarantined, parsed again by the contract in force, and landed where that has a place for them.

quarantine lines -> one an ID, of landed batches, not released before -> interpreted -> batch by batch: appended,
counted, landed. What still has no place stays where it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from onceover.context import PipelineContext
from onceover.fault_points import FaultPoint, Step
from onceover.ingest.batch_steps import append_and_count
from onceover.ingest.micro_batch import MicroBatch, attempt
from onceover.ledger import batches, releases
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.drivers import Epoch
from onceover.ledger.expiries import list_expired
from onceover.ledger.frontiers import read_accounted
from onceover.model.offsets import KafkaPartition, OffsetRange, split
from onceover.model.window import from_ms
from onceover.spark import text_files
from onceover.spark.interpret import interpret
from onceover.spark.leases import Leases
from onceover.spark.range_join import looked_up
from onceover.spark.source import SCHEMA
from onceover.spark.text_files import QUARANTINE

log = logging.getLogger(__name__)
CONFLICT = "quarantined with several contents"
UNACCOUNTED = "of a batch that did not land"
EXPIRED = "raw of its window has expired"
_OF_RECORD = tuple(field.split()[0] for field in SCHEMA.split(", "))
_ID = ("generation", "kafka_partition", "offset")


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at the quarantine found: records that have a place now, by their windows and as IDs, and how many
    have none, by why."""

    windows: dict[datetime, int]
    ids: tuple[OffsetRange, ...]
    left: dict[str, int]


class ReleaseRun:
    """One release, on one Spark session. `look` first; `carry_out` is for the pipeline's driver; then `close`."""

    def __init__(self, spark: SparkSession, context: PipelineContext, known: RegisteredPipeline) -> None:
        self._spark, self._connection, self._known, self._context = spark, context.ledger, known, context
        self._hdfs, self._most = context.address("hdfs").rstrip("/"), context.pipeline.ingest.max_records_per_batch
        self._judged: DataFrame | None = None

    def look(self, days: Iterable[date], reason: str | None) -> Found:
        """Judge what stands in these days' files, where a `reason` is given what was quarantined for one that contains
        it, and was not released before."""
        paths = [(QUARANTINE, self._hdfs + self._context.layout.quarantine_file(day)) for day in days]
        if not paths:
            return Found({}, (), {})
        with attempt():
            self._judged = self._judge(text_files.read_text(self._spark, paths), reason).persist(StorageLevel.DISK_ONLY)
            counts = self._judged.groupBy("why", "window_ms").count().collect()  # one row a reason or window
            windows = {from_ms(row.window_ms): row["count"] for row in counts if row.why is None}
            left = {row.why: row["count"] for row in counts if row.why is not None}
            return Found(dict(sorted(windows.items())), self._ids(self._judged), dict(sorted(left.items())))

    def carry_out(self, epoch: Epoch, ids: Sequence[OffsetRange], who: str, why: str, fault_point: FaultPoint) -> int:
        """Land these IDs that `look` found, some at a time; returns how many batches that were. What has landed when
        this is killed stays landed."""
        chunks = list(_chunks(ids, self._most))
        for chunk in chunks:
            batch_id = batches.begin(self._connection, epoch, self._known.contract_version, (), None)
            fault_point.stop_after(Step.BEGUN)
            with closing(self._work(chunk)) as work:
                done = append_and_count(self._connection, epoch, self._known, batch_id, work, fault_point)
            releases.land_release(self._connection, epoch, batch_id, done.read, done.landings, chunk, who, why)
            fault_point.stop_after(Step.LANDED)
            batches.mark_committed(self._connection, epoch, batch_id)
            log.info("batch %d released %d records", batch_id, sum(map(len, chunk)))
        return len(chunks)

    def _work(self, chunk: Sequence[OffsetRange]) -> MicroBatch:
        def records() -> DataFrame:
            if self._judged is None:
                raise ValueError("look first")
            chosen = self._judged.transform(looked_up(((r, 1) for r in chunk), "is_chosen"))
            return chosen.where("is_chosen IS NOT NULL").select(*_OF_RECORD)

        today, leases = datetime.now(UTC).date(), Leases(self._spark, self._hdfs)
        webhdfs, layout = self._context.address("webhdfs"), self._context.layout
        return MicroBatch(self._spark, self._known, records, _hulls(chunk), webhdfs, layout, today, leases)

    def close(self) -> None:
        if self._judged is not None:
            with attempt():
                self._judged.unpersist()

    def _judge(self, read: DataFrame, reason: str | None) -> DataFrame:
        """A row an ID: its record, and its `window_ms` or `why` it has none."""
        known, length = self._known, self._known.contract.window_minutes * 60_000
        chosen = F.lit(True) if reason is None else F.contains("quarantined_for", F.lit(reason))
        before = ((r, 1) for one in releases.list_releases(self._connection, known.name) for r in one.ranges)
        landed = ((r, 1) for r in read_accounted(self._connection, known.name))
        gone_windows, _ = list_expired(self._connection, known.name)
        gone = self._spark.createDataFrame(
            [(int(start.timestamp() * 1000), True) for start in gone_windows], "window_ms bigint, is_gone boolean"
        )
        record = [F.first(name).alias(name) for name in _OF_RECORD if name not in _ID]
        window_ms = F.col("event_ms") - F.pmod("event_ms", F.lit(length))
        return (
            read.where(F.col("intact") & F.col("event_ms").isNull() & chosen)
            .select("quarantined_for", "content", "generation", "kafka_partition", "offset", "kafka_timestamp",
                    "key", "headers", F.col("payload").alias("value"))
            .transform(looked_up(before, "is_released"))
            .where("is_released IS NULL")
            .transform(looked_up(landed, "is_landed"))
            .groupBy(*_ID, "is_landed")
            .agg(F.count_distinct("content").alias("contents"), *record)
            .transform(interpret(known.contract))
            .withColumn("window_ms", window_ms)
            .join(F.broadcast(gone), "window_ms", "left")
            .withColumn(
                "why",
                F.when(F.col("is_landed").isNull(), UNACCOUNTED)
                .when(F.col("contents") > 1, CONFLICT)
                .when(F.col("reason").isNotNull(), F.col("reason"))
                .when(F.col("is_gone"), EXPIRED),
            )
            .withColumn("window_ms", F.when(F.col("why").isNull(), F.col("window_ms")))
            .select("generation", *_OF_RECORD, "window_ms", "why")
        )  # fmt: skip

    def _ids(self, judged: DataFrame) -> tuple[OffsetRange, ...]:
        """Those that have a place, as the fewest ranges that hold them and nothing else."""
        in_order = Window.partitionBy("generation", "kafka_partition").orderBy("offset")
        rows = (
            judged.where("why IS NULL")
            .select(*_ID, (F.col("offset") - F.row_number().over(in_order)).alias("run"))
            .groupBy("generation", "kafka_partition", "run")
            .agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
            .collect()  # one row a run
        )
        return tuple(
            sorted(OffsetRange(KafkaPartition(r.generation, r.kafka_partition), r.first, r.last + 1) for r in rows)
        )


def _chunks(ids: Iterable[OffsetRange], most: int) -> Iterator[list[OffsetRange]]:
    """In order, of one generation each, `most` IDs at most."""
    for _, of_it in groupby(split(ids, most), key=lambda piece: piece.source.generation):
        chunk: list[OffsetRange] = []
        room = most
        for piece in of_it:
            if len(piece) > room:
                yield chunk
                chunk, room = [], most
            chunk.append(piece)
            room -= len(piece)
        yield chunk


def _hulls(chunk: Iterable[OffsetRange]) -> list[OffsetRange]:
    """By Kafka partition, from the first to the last of the IDs."""
    found: dict[KafkaPartition, OffsetRange] = {}
    for piece in chunk:  # in order
        found[piece.source] = OffsetRange(piece.source, found.get(piece.source, piece).start, piece.end)
    return list(found.values())
