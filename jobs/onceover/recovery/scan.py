"""Scan of all of a pipeline's raw, text and compacted: the offsets in unbroken runs, and each run's part in each file.

lines and records -> one row an ID, window and content -> numbered within its ID (a layer)
-> runs of offsets a layer, version and leader epoch
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import reduce

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from onceover.errors import TerminalError
from onceover.lines.contract_names import name_contracts
from onceover.model.contract import Contracts
from onceover.model.digest import HALVES, Digest
from onceover.model.log_history import NO_EPOCH
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import COMPACTED, LONGEST_RUN, RawContents, RawFile, Run, UnknownLines
from onceover.model.window import from_ms, to_ms
from onceover.model.windowing import Windowing
from onceover.spark import compacted_files
from onceover.spark.contract_versions import add_version
from onceover.spark.raw_lines import QUARANTINE, LineFile, read_raw_lines
from onceover.spark.windowing import find_window

_SOURCE = ("generation", "kafka_partition")
_ID = (*_SOURCE, "offset")
_PLACES = "place bigint, window_ms bigint"
_MAX_ROWS = 1_000_000


def scan(
    spark: SparkSession,
    address: str,
    files: Sequence[RawFile],
    contracts: Contracts,
) -> RawContents:
    """Return all that these files hold, of these versions of the contract. Damaged lines, and lines in another window's
    file, are left out.

    Raises TerminalError for a compacted file that is not as its name says, and for more than a million rows of runs and
    files.
    """
    if not files:
        return RawContents()
    digests = _read_compacted_digests(spark, address, files)
    with closing(_Distinct(spark, address, _order_places(files, digests), contracts)) as distinct:
        layers, released = distinct.collect_runs()
        unknown = tuple(distinct.list_unknown(files))
    return RawContents(layers, released, digests, unknown)


class _Distinct:
    """A row for each ID, window (or file of quarantine) and content, kept until `close`."""

    def __init__(
        self, spark: SparkSession, address: str, places: Sequence[tuple[int, RawFile]], contracts: Contracts
    ) -> None:
        read = _read(spark, address, places, contracts.newest.windowing).transform(add_versions(contracts))
        self._rows, self._cutovers = _number(read).persist(StorageLevel.DISK_ONLY), contracts.cutovers

    def list_unknown(self, files: Sequence[RawFile]) -> list[UnknownLines]:
        """Return the lines of other contracts."""
        rows = (
            self._rows.where("unknown IS NOT NULL")
            .groupBy(*_SOURCE, "unknown")
            .agg(F.sum("unknown_lines").alias("lines"), F.min("place").alias("place"))
            .orderBy(*_SOURCE, "unknown")
            .collect()  # one row a contract and Kafka partition
        )
        return [
            UnknownLines(
                KafkaPartition(row.generation, row.kafka_partition), row.unknown, files[row.place].path, row.lines
            )
            for row in rows
        ]

    def collect_runs(self) -> tuple[tuple[tuple[Run, ...], ...], tuple[Run, ...]]:
        """Return the runs of each layer and those of released records, each of one leader epoch, by version and in
        order."""
        of_run = (*_SOURCE, "released", "layer", "version", "leader_epoch")
        in_order = Window.partitionBy(*of_run).orderBy("offset")
        rows = (
            self._rows.transform(add_version(self._cutovers))
            .withColumn("run", F.col("offset") - F.row_number().over(in_order))
            .withColumn("part", F.expr(f"offset div {LONGEST_RUN}L"))
            .groupBy(*of_run, "run", "part", "place")
            .agg(
                F.min("offset").alias("first"),
                F.max("offset").alias("last"),
                F.count(F.lit(1)).alias("records"),
                *(F.sum(half).alias(half) for half in HALVES),
                F.max("event_ms").alias("max_event_ms"),
                F.min(F.when(F.col("kafka_timestamp") >= 0, F.col("kafka_timestamp"))).alias("oldest_ms"),
            )
            .limit(_MAX_ROWS + 1)
            .collect()  # one row a run and file
        )
        if len(rows) > _MAX_ROWS:
            raise TerminalError(
                f"raw has more than {_MAX_ROWS:,} runs and files, as is usual for a topic of transactions; restore a "
                "backup of the ledger instead"
            )
        by_run: dict[tuple[int, int, KafkaPartition, int, int, int], list[Row]] = {}
        for row in rows:
            layer = 0 if row.released else row.layer
            source = KafkaPartition(row.generation, row.kafka_partition)
            by_run.setdefault((layer, row.version, source, row.leader_epoch, row.run, row.part), []).append(row)
        runs: dict[int, list[Run]] = {}
        for (layer, version, source, epoch, *_), held in by_run.items():
            runs.setdefault(layer, []).append(_build_run(source, held, version, epoch))
        for of_layer in runs.values():
            of_layer.sort(key=lambda run: (run.version, run.offsets.source, run.offsets.start))
        released = tuple(runs.pop(0, ()))
        return tuple(tuple(of_layer) for _, of_layer in sorted(runs.items())), released

    def close(self) -> None:
        with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
            self._rows.unpersist()


def add_versions(contracts: Contracts) -> Callable[[DataFrame], DataFrame]:
    """Add to lines with a `contract` the version of these contracts by which each was read, `line_version`, or was
    released, `line_released`, or the `unknown` contract: the other two are null."""
    names = [name.decode() for name in name_contracts(contracts)]
    is_known, is_release = F.col("contract").isin(names), F.col("contract").startswith("R")
    version = F.substring_index(F.substr("contract", F.lit(2)), "-", 1).cast("int")

    def add(rows: DataFrame) -> DataFrame:
        return rows.withColumns(
            {
                "line_version": F.when(is_known & ~is_release, version),
                "line_released": F.when(is_known & is_release, version),
                "unknown": F.when(~is_known, F.col("contract")),
            }
        )

    return add


def _order_places(files: Sequence[RawFile], digests: Mapping[int, Digest]) -> list[tuple[int, RawFile]]:
    """Return the files to read with their numbers; of a window's compacted files only the one with the most records.

    Raises TerminalError if there are two with the same number of records: neither holds all of the other."""
    chosen: dict[object, int] = {}
    for number, digest in digests.items():
        start = files[number].window_start
        other = chosen.setdefault(start, number)
        if other == number:
            continue
        if digests[other].records == digest.records:
            raise TerminalError(
                f"{files[other].path} and {files[number].path} have the same number of records, and not the "
                "same ones; move one of them out of the pipeline's folder"
            )
        chosen[start] = max(other, number, key=lambda n: digests[n].records)
    return [(n, file) for n, file in enumerate(files) if not file.is_compacted or n in chosen.values()]


def _read_compacted_digests(spark: SparkSession, address: str, files: Sequence[RawFile]) -> dict[int, Digest]:
    """Return the digest of each compacted file's records, by the file's number."""
    numbers = {file.path: number for number, file in enumerate(files) if file.is_compacted}
    held = compacted_files.digest_files(
        spark, address, [LineFile(number, path, files[number].length) for path, number in numbers.items()]
    )
    for path, number in numbers.items():
        digest = held.setdefault(number, Digest())
        if not path.endswith(f".{str(digest).partition('records ')[2]}{COMPACTED}"):
            raise TerminalError(
                f"{path} reads back as {digest}, which is not what its name says: put the whole file back, or move it "
                "out of the pipeline's folder if the window's text is whole"
            )
    return held


def _read(spark: SparkSession, address: str, places: Sequence[tuple[int, RawFile]], windowing: Windowing) -> DataFrame:
    """Return the intact lines and records that belong to their file's window, or to quarantine."""
    columns = (*_ID, "event_ms", "leader_epoch", "kafka_timestamp", "contract", *HALVES)
    numbered = spark.createDataFrame(
        [(n, QUARANTINE if file.window_start is None else to_ms(file.window_start)) for n, file in places], _PLACES
    )
    belongs = F.coalesce(find_window(windowing), F.lit(QUARANTINE)) == F.col("window_ms")
    files = [LineFile(number, file.path, file.length) for number, file in places]
    return (
        read_raw_lines(spark, address, files, *columns, "intact")
        .where("intact")
        .withColumnRenamed("window_ms", "place")
        .join(F.broadcast(numbered), "place")
        .where(belongs)
        .select(*columns, F.col("place").cast("int"), "window_ms")
    )


def _number(read: DataFrame) -> DataFrame:
    """Return a row for each ID, window or file of quarantine, and content, with its `layer` from 1, whether it was
    `released`, as the line says or because quarantine holds it too, and under which version. A record that two windows
    have, dated by two versions, is in the later one alone, and in no first layer: its batch landed nothing in the
    earlier one. Nor are two contents of one ID under one epoch, of which its batch landed one."""
    quarantined = F.col("window_ms") == QUARANTINE
    of_id, of_content = Window.partitionBy(*_ID), Window.partitionBy(*_ID, *HALVES)
    of_record = Window.partitionBy(*_ID, "leader_epoch", *HALVES)
    of_reading = Window.partitionBy(*_ID, "leader_epoch")
    differ = reduce(Column.__or__, (F.min(half).over(of_reading) != F.max(half).over(of_reading) for half in HALVES))
    filed = ~quarantined & (F.max(quarantined).over(of_content) | F.col("line_released").isNotNull())
    in_turn = Window.partitionBy(*_ID, "released").orderBy(
        "leader_epoch", F.col("window_ms") != QUARANTINE, "place", *HALVES
    )
    return (
        read.repartition(*_ID)
        .groupBy(*_ID, "window_ms", F.when(quarantined, F.col("place")).alias("day"), *HALVES, "event_ms")
        .agg(
            F.min("place").alias("place"),
            F.coalesce(F.max("leader_epoch"), F.lit(NO_EPOCH)).alias("leader_epoch"),
            F.min("kafka_timestamp").alias("kafka_timestamp"),
            F.min("line_version").alias("line_version"),
            F.max("line_released").alias("line_released"),
            F.min("unknown").alias("unknown"),
            F.count("unknown").alias("unknown_lines"),
        )
        .withColumn("filed", filed)
        .withColumn("released", F.col("filed") & (F.col("place") == F.min(F.when(F.col("filed"), F.col("place")))
                    .over(of_id)))
        .withColumn("released_version", F.when(F.col("released"), F.coalesce("line_released", "line_version")))
        .withColumn("counting_ms", F.when(~quarantined & ~F.col("released"), F.col("window_ms")))
        .withColumn("last_ms", F.max("counting_ms").over(of_record))
        .withColumn("is_earlier", F.coalesce(F.col("counting_ms") < F.col("last_ms"), F.lit(False)))
        .withColumn("is_twice", F.max("is_earlier").over(of_id) | differ)
        .where(quarantined | F.col("released") | (F.col("window_ms") == F.col("last_ms")))
        .withColumn("layer", F.row_number().over(in_turn) + F.col("is_twice").cast("int"))
    )  # fmt: skip


def _build_run(source: KafkaPartition, rows: Sequence[Row], version: int, leader_epoch: int) -> Run:
    newest = max((row.max_event_ms for row in rows if row.max_event_ms is not None), default=None)
    oldest = min((row.oldest_ms for row in rows if row.oldest_ms is not None), default=None)
    first = min(row.first for row in rows)
    return Run(
        OffsetRange(source, first, max(row.last for row in rows) + 1),
        tuple((row.place, Digest(row.records, *(getattr(row, half) for half in HALVES))) for row in rows),
        None if newest is None else from_ms(newest),
        None if oldest is None else from_ms(oldest),
        ((leader_epoch, first),),
        version,
    )
