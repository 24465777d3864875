"""Release of quarantined records: parsed again by the contract in force, and landed in the windows that it gives them.

quarantine lines -> one an ID, of landed batches, not released before -> interpreted -> batch by batch: appended,
counted, landed. Records that still have no window stay in quarantine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from itertools import groupby

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from onceover.context import PipelineContext
from onceover.errors import HungSparkError, PoisonRecordError, TransientError
from onceover.fault_points import FaultPoint, Step
from onceover.ingest.batch_query import BatchQuery
from onceover.ingest.batch_steps import BatchResult, StagedBatch, append_and_stage
from onceover.ingest.contracts import keep_registered_contracts
from onceover.ingest.micro_batch import append_batch, attempt
from onceover.ingest.sinks import SINKS
from onceover.ledger import batches, releases
from onceover.ledger.catalog import RegisteredPipeline, record_poison
from onceover.ledger.drivers import Epoch, record_versions
from onceover.ledger.expiries import list_expired
from onceover.ledger.landed_offsets import read_settled
from onceover.model.digest import HALVES
from onceover.model.offsets import KafkaPartition, OffsetRange, span_sources, split
from onceover.model.poison import PoisonRecord
from onceover.model.record import ID_COLUMNS
from onceover.model.window import from_ms
from onceover.spark.decoding import find_decoding
from onceover.spark.hang_watch import end_hung_spark
from onceover.spark.interpret import interpret
from onceover.spark.poison_probe import ProbeRequest, QuarantineLines
from onceover.spark.poison_search import search_quarantine
from onceover.spark.range_join import looked_up
from onceover.spark.raw_lines import QUARANTINE, LineFile, read_raw_lines
from onceover.spark.session import choose_codegen, read_zone_data
from onceover.spark.source import SCHEMA, add_shard_ends
from onceover.spark.windowing import find_window

log = logging.getLogger(__name__)
CONFLICT = "quarantined with several contents"
UNACCOUNTED = "of a batch that did not land"
BYTES_A_LINE = 100
EXPIRED = "raw of its window has expired"
_OF_RECORD = tuple(SCHEMA.names)
_READ = ("intact", "event_ms", "quarantined_for", "generation", *_OF_RECORD)


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """The records to release, by window and as IDs, and the number of those `left` in quarantine, by reason."""

    windows: dict[datetime, int]
    ids: tuple[OffsetRange, ...]
    left: dict[str, int]


class ReleaseRun:
    """A release on one Spark session: `plan`, then `carry_out` as the pipeline's driver, then `close`."""

    def __init__(self, spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline) -> None:
        self._spark, self._connection, self._registered, self._context = spark, context.ledger, registered, context
        self._raw_address, self._most = context.raw_address, context.pipeline.ingest.max_records_per_batch
        self._schemas = context.ask_registry(keep=True)
        self._judged: DataFrame | None = None
        self._bytes = 0

    def plan(self, days: Mapping[date, int], reason: str | None) -> ReleasePlan:
        """Judge the records in these days' files, to these lengths, that were not released before; with a `reason`,
        only those quarantined for a reason that contains it."""
        self._context.require_known_format()
        layout = self._context.layout
        files = [LineFile(QUARANTINE, layout.quarantine_file(day), length) for day, length in days.items()]
        if not files:
            return ReleasePlan({}, (), {})
        self._bytes = sum(days.values())
        try:
            return self._plan(files, reason)
        except (PoisonRecordError, HungSparkError) as error:
            found = self._search(files)
            if isinstance(error, HungSparkError) or not found:
                raise TransientError(
                    f"{error}; {len(found)} records to blame were found, run the command again"
                ) from error
        return self._plan(files, reason)

    def _search(self, files: Sequence[LineFile]) -> list[PoisonRecord]:
        """Record which of the records the contract in force cannot be evaluated for, and leave them in quarantine."""
        registered = self._registered
        log.warning("a record ends Spark, or never lets it end: searching for it among those in quarantine")
        lines = QuarantineLines(self._raw_address, tuple(files))
        asked = ProbeRequest(lines, registered.contract, registered.list_poison(), self._schemas)
        found = search_quarantine(asked, registered.contract_version)
        record_poison(self._connection, registered.name, found)
        self._registered = replace(registered, poison=(*registered.poison, *found))
        return found

    def _plan(self, files: Sequence[LineFile], reason: str | None) -> ReleasePlan:
        with (
            end_hung_spark(self._spark, self._bytes // BYTES_A_LINE),
            attempt(),
            choose_codegen(self._spark, self._bytes),
        ):
            read = read_raw_lines(self._spark, self._raw_address, files, *_READ)
            self._judged = self._judge(read, reason).persist(StorageLevel.DISK_ONLY)
            counts = self._judged.groupBy("why", "window_ms").count().collect()  # one row a reason or window
            windows = {from_ms(row.window_ms): row["count"] for row in counts if row.why is None}
            left = {row.why: row["count"] for row in counts if row.why is not None}
            return ReleasePlan(dict(sorted(windows.items())), self._ids(self._judged), dict(sorted(left.items())))

    def carry_out(self, epoch: Epoch, ids: Sequence[OffsetRange], who: str, why: str, fault_point: FaultPoint) -> int:
        """Land these IDs of the plan in batches; return the number of batches. If killed, batches that have landed
        remain."""
        self._context.root.mark_driver(epoch, who, "quarantined records were released")
        keep_registered_contracts(self._spark, self._context, self._registered)
        record_versions(self._connection, epoch, self._spark.version, read_zone_data(self._spark))
        name = self._context.pipeline.ingest.sink
        sink = SINKS[name](self._connection, epoch)
        chunks = list(_split_ids(ids, self._most))
        for chunk in chunks:
            batch_id = batches.begin(self._connection, epoch, self._registered.contract_version, (), None, name)
            fault_point.stop_after(Step.BEGUN)
            with choose_codegen(self._spark, self._bytes):
                staged = append_and_stage(
                    self._connection, self._registered, batch_id, partial(self._append, chunk), fault_point
                )
            sink.write(staged, partial(self._land, epoch, staged, chunk, who, why), fault_point)
            fault_point.stop_after(Step.LANDED)
            batches.mark_committed(self._connection, epoch, batch_id)
            log.info("batch %d released %d records", batch_id, sum(map(len, chunk)))
        return len(chunks)

    def _land(self, epoch: Epoch, staged: StagedBatch, ids: Sequence[OffsetRange], who: str, why: str) -> None:
        read, landings = staged.result.read, staged.result.landings
        releases.land_release(self._connection, epoch, staged.batch_id, read, landings, ids, who, why)

    def _append(self, chunk: Sequence[OffsetRange]) -> BatchResult:
        spans = span_sources(chunk)

        def query() -> BatchQuery:
            if self._judged is None:
                raise ValueError("plan the release first")
            chosen = self._judged.transform(looked_up(((r, 1) for r in chunk), "is_chosen"))
            generation = chunk[0].source.generation
            decoding = find_decoding(self._spark, self._registered.contract, self._schemas)
            chosen = chosen.where("is_chosen IS NOT NULL").select(*_OF_RECORD)
            records = add_shard_ends(chosen, generation, decoding)
            return BatchQuery(
                self._spark, self._context, self._registered, generation, records, 2, None, self._schemas, released=True
            )

        return append_batch(self._spark, self._context, query, spans, spans)

    def close(self) -> None:
        if self._judged is not None:
            with attempt():
                self._judged.unpersist()

    def _judge(self, read: DataFrame, reason: str | None) -> DataFrame:
        """Return a row an ID: its record, and its `window_ms` or `why` it has none."""
        registered = self._registered
        chosen = F.lit(True) if reason is None else F.contains("quarantined_for", F.lit(reason))
        before = ((r, 1) for rel in releases.list_releases(self._connection, registered.name) for r in rel.ranges)
        landed = ((r, 1) for r in read_settled(self._connection, registered.name))
        expired_windows, _ = list_expired(self._connection, registered.name)
        expired_starts = self._spark.createDataFrame(
            [(int(start.timestamp() * 1000), True) for start in expired_windows], "window_ms bigint, is_expired boolean"
        )
        record = [F.first(name).alias(name) for name in _OF_RECORD if name not in ID_COLUMNS]
        return (
            read.where(F.col("intact") & F.col("event_ms").isNull() & chosen)
            .select("generation", *_OF_RECORD)
            .transform(looked_up(before, "is_released"))
            .where("is_released IS NULL")
            .transform(looked_up(landed, "is_landed"))
            .groupBy(*ID_COLUMNS, "is_landed")
            .agg(F.count_distinct(*HALVES).alias("contents"), *record)
            .transform(interpret(registered.contract, registered.list_poison(), self._schemas))
            .withColumn("window_ms", find_window(registered.windowing))
            .join(F.broadcast(expired_starts), "window_ms", "left")
            .withColumn(
                "why",
                F.when(F.col("is_landed").isNull(), UNACCOUNTED)
                .when(F.col("contents") > 1, CONFLICT)
                .when(F.col("reason").isNotNull(), F.col("reason"))
                .when(F.col("is_expired"), EXPIRED),
            )
            .withColumn("window_ms", F.when(F.col("why").isNull(), F.col("window_ms")))
            .select("generation", *_OF_RECORD, "window_ms", "why")
        )  # fmt: skip

    def _ids(self, judged: DataFrame) -> tuple[OffsetRange, ...]:
        """Return the IDs to release, as the fewest ranges that hold only them."""
        in_order = Window.partitionBy("generation", "kafka_partition").orderBy("offset")
        rows = (
            judged.where("why IS NULL")
            .select(*ID_COLUMNS, (F.col("offset") - F.row_number().over(in_order)).alias("run"))
            .groupBy("generation", "kafka_partition", "run")
            .agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
            .collect()  # one row a run
        )
        return tuple(
            sorted(OffsetRange(KafkaPartition(r.generation, r.kafka_partition), r.first, r.last + 1) for r in rows)
        )


def _split_ids(ids: Iterable[OffsetRange], most: int) -> Iterator[list[OffsetRange]]:
    """Yield the IDs in order, in chunks of one generation and at most `most` IDs."""
    for _, pieces in groupby(split(ids, most), key=lambda piece: piece.source.generation):
        chunk: list[OffsetRange] = []
        room = most
        for piece in pieces:
            if len(piece) > room:
                yield chunk
                chunk, room = [], most
            chunk.append(piece)
            room -= len(piece)
        yield chunk
