"""One batch's Spark side: records read and interpreted once, and kept for `append` and `rows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover.context import PipelineContext
from onceover.errors import SparkLostError, TransientError
from onceover.ingest.landing import REASON, RECORD, AppendFailedError, Framing, append_batch
from onceover.ledger.catalog import RegisteredPipeline
from onceover.lines.contract_names import name_contract
from onceover.lines.reference import MAX_EVENT_MS
from onceover.model.batch import Increment, Landing, RangeRead
from onceover.model.digest import EMPTY, HALVES, Digest
from onceover.model.log_history import NO_EPOCH, order_epochs
from onceover.model.offsets import OffsetRange
from onceover.model.window import Window, from_ms, to_ms
from onceover.spark import lines
from onceover.spark.aggregate import aggregate
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.failure import summarize
from onceover.spark.hdfs_leases import Leases
from onceover.spark.interpret import interpret


class MicroBatch:
    """The `BatchWork` of one batch; `close` frees what Spark kept.

    `records` returns the records of `ranges`, all of one generation, in the columns of `source.SCHEMA`, of which
    `leader_epoch` may be missing. With `only`, the batch has that window's records and no others. `released` records
    come from quarantine, and their lines say so.
    """

    def __init__(
        self,
        spark: SparkSession,
        context: PipelineContext,
        registered: RegisteredPipeline,
        records: Callable[[], DataFrame],
        ranges: Sequence[OffsetRange],
        only: datetime | None = None,
        *,
        released: bool = False,
    ) -> None:
        self._spark, self._context, self._registered, self._ranges = spark, context, registered, ranges
        self._today = datetime.now(UTC).date()
        length = registered.contract.window_minutes * 60_000
        with attempt():
            self._records = (
                records()
                .transform(interpret(registered.contract))
                .withColumn("window_ms", F.col("event_ms") - F.pmod("event_ms", F.lit(length)))
                .where(F.lit(True) if only is None else F.col("window_ms") == to_ms(only))
                .transform(self._select_needed)
                .persist(StorageLevel.MEMORY_AND_DISK)
            )
        self._framing = Framing(
            ranges[0].source.generation,
            name_contract(registered.contract, registered.contract_version, released=released),
            tuple(name for name in self._records.columns if name.startswith(("k_", "m_"))),
        )
        self._files = 0

    def read(self) -> tuple[list[RangeRead], list[Increment]]:
        """Return each range's digest and the batch's increment of each window. Reads Kafka and keeps the records."""
        with attempt():
            sums = (
                self._records.groupBy("window_ms", "kafka_partition", "leader_epoch")
                .agg(
                    *lines.aggregate_digest(),
                    F.max("event_ms").alias("max_event_ms"),
                    F.min(F.when(F.col("kafka_timestamp") >= 0, F.col("kafka_timestamp"))).alias("oldest_ms"),
                    F.min("offset").alias("first_offset"),
                    F.max("offset").alias("last_offset"),
                )
                .collect()  # one row a window, Kafka partition and leader epoch
            )
        delivered: dict[int, Digest] = {}
        newest: dict[int, int] = {}
        oldest: dict[int, int] = {}
        added: dict[int, Digest] = {}
        epochs: dict[int, dict[int, tuple[int, int]]] = {}
        for row in sums:
            digest = Digest(row.records, row.high1, row.low1, row.high2, row.low2)
            delivered[row.kafka_partition] = delivered.get(row.kafka_partition, EMPTY) + digest
            if row.oldest_ms is not None:
                oldest[row.kafka_partition] = min(row.oldest_ms, oldest.get(row.kafka_partition, row.oldest_ms))
            of_source = epochs.setdefault(row.kafka_partition, {})
            epoch = NO_EPOCH if row.leader_epoch is None else row.leader_epoch
            low, high = of_source.get(epoch, (row.first_offset, row.last_offset))
            of_source[epoch] = min(low, row.first_offset), max(high, row.last_offset)
            if row.window_ms is not None:
                added[row.window_ms] = added.get(row.window_ms, EMPTY) + digest
                newest[row.kafka_partition] = max(row.max_event_ms, newest.get(row.kafka_partition, 0))
        self._files = len({row.window_ms for row in sums})
        minutes = self._registered.contract.window_minutes
        windows = {window_ms: Window.at(from_ms(window_ms), minutes) for window_ms in added}
        return (
            [
                RangeRead(
                    r,
                    delivered.get(r.source.kafka_partition, EMPTY),
                    _to_moment(newest.get(r.source.kafka_partition)),
                    _to_moment(oldest.get(r.source.kafka_partition)),
                    order_epochs(epochs.get(r.source.kafka_partition, {})),
                )
                for r in self._ranges
            ],
            [Increment(windows[ms].start, windows[ms].end, digest) for ms, digest in sorted(added.items())],
        )

    def append(self) -> list[Landing]:
        """Append every record to its window's file, one task a window."""
        if not self._files:
            return []
        tasks = min(self._files, 2 * self._spark.sparkContext.defaultParallelism)
        try:
            with attempt():
                webhdfs, layout = self._context.address("webhdfs"), self._context.layout
                return append_batch(self._records, webhdfs, layout, self._today, self._framing, tasks)
        except AppendFailedError as error:
            # This driver holds the epoch, so these files' leases belong to a driver that is dead or fenced.
            for path in error.held_paths:
                with attempt():
                    Leases(self._spark, self._context.address("hdfs")).recover(path)
            raise

    def rows(self) -> Iterator[str]:
        """Yield the batch's aggregated rows as COPY text."""
        counted = self._records.where("window_ms IS NOT NULL").transform(aggregate(self._registered.contract))
        with attempt():
            yield from format_copy_lines(counted, self._registered.columns.names)

    def close(self) -> None:
        with attempt():
            self._records.unpersist()

    def _select_needed(self, records: DataFrame) -> DataFrame:
        inputs = [name for name in records.columns if name.startswith(("k_", "m_"))]
        if "leader_epoch" not in records.columns:  # a release's records are lines of raw
            records = records.withColumn("leader_epoch", F.lit(None).cast("int"))
        return records.select("window_ms", *RECORD, REASON, "leader_epoch", *HALVES, *inputs)


def _to_moment(ms: int | None) -> datetime | None:
    return None if ms is None or ms > MAX_EVENT_MS else from_ms(ms)


@contextmanager
def attempt() -> Iterator[None]:
    """Raise errors of Spark or its gateway as TransientError with a one-line reason, SparkLostError for a dead JVM."""
    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkLostError("Spark's JVM has died; start ingest again, it resumes where it stopped") from error
    except (PySparkException, Py4JError) as error:
        raise TransientError(f"Spark failed: {summarize(error)}") from error
