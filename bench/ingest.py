"""One million records of 200 bytes from Kafka into window files on HDFS and aggregated rows, beside Spark's own sinks.

Onceover reads, interprets, frames with ID, hash and digest, appends one file a window, and groups the records of each.
The peers write the same values as text, a folder a window, without any of these: Structured Streaming by its file sink
and the connector of the JVM, and a plain job on Onceover's reader.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.stream_peer import fetch_connector, set_submit_args, write_by_window
from bench.table import Row, alternate_all, middle, runs
from onceover.config.endpoints import address
from onceover.context import open_pipeline
from onceover.ingest.batch_queries import BatchQueries
from onceover.ingest.batch_steps import BatchResult
from onceover.ingest.micro_batch import MicroBatch
from onceover.kafka import Topic
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import connect
from onceover.model.batch import require_all_landed
from onceover.model.batch_plan import cut_into_shards
from onceover.model.contract import Contract, Measure
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.pipeline import IngestPolicy, Pipeline, RepairPolicy, StoragePolicy
from onceover.spark.contract_check import check_contract
from onceover.spark.session import build
from onceover.spark.source import KafkaSource, read_ranges

RECORDS = 1_000_000
FEW = 400
PARTITIONS = 4
START = datetime(2026, 3, 1, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
CONTRACT = Contract(
    topic="bench",
    window_minutes=60,
    format="json",
    schema="at BIGINT, kind STRING, amount INT",
    required=("at",),
    event_time="value.at",
    tombstone="quarantine",
    keys=(),
    measures=(Measure("events", "count", "*"), Measure("amount", "sum", "value.amount")),
    horizon_ms=None,
    skew_ms=None,
)
_STREAM = "Structured Streaming's file sink by window"
_runs = count()


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    connector = fetch_connector()
    set_submit_args("--master local[2] --driver-memory 4g", connector)
    spark = build("bench ingest")
    rows: list[Row] = []
    notes = [f"{RECORDS:,} records of 200 bytes in {PARTITIONS} Kafka partitions, {os.cpu_count()} cores"]
    for windows in (7, 1):
        works = _Works(spark, f"bench{windows}", windows)
        peers = {"a plain job on the same reader": works.write_by_job}
        if connector:
            peers[_STREAM] = works.write_by_stream
        ours, *others = alternate_all((works.land, *peers.values()), runs())
        pace = RECORDS / middle(ours)
        for name, seconds in zip(peers, others, strict=True):
            peer_pace = RECORDS / middle(seconds)
            goal, met = ("ratio 2.9", pace / peer_pace >= 2.9) if name == _STREAM else ("100,000", pace >= 100_000)
            rows.append(Row(f"Kafka to {windows} window files, warm", pace, peer_pace, name, "records/s",
                            pace / peer_pace, goal, met, works.correct, len(ours)))  # fmt: skip
        if windows == 1:
            continue
        small, small_peer = alternate_all((works.land_few, works.read_few), 6 * runs())
        rows.append(Row(f"a batch of {FEW} records, warm, without the ledger", middle(small), middle(small_peer),
                        "to read it by Spark", "s", middle(small) / middle(small_peer), "0.5", middle(small) <= 0.5,
                        works.correct, len(small)))  # fmt: skip
    spark.stop()
    return rows, notes


class _Works:
    """The works over one topic, whose records are of so many windows; each checks what it wrote."""

    def __init__(self, spark: SparkSession, topic: str, windows: int) -> None:
        _produce(topic, windows)
        self.correct = True
        self._spark, self._windows, self._few = spark, windows, count()
        self._contract = replace(CONTRACT, topic=topic)
        facts = Topic(address("kafka"), topic, "read_committed", {}).facts()
        self._source = KafkaSource(address("kafka"), topic, facts.topic_id)
        self._ranges = [OffsetRange(KafkaPartition(facts.generation, p), 0, facts.end[p]) for p in facts.end]
        policy = IngestPolicy(0, 1, 1, RECORDS, "kafka", "", "bench", "read_committed", "earliest")
        self._pipeline = Pipeline(topic, self._contract, policy, StoragePolicy("/bench"), RepairPolicy(3))
        with connect(address("postgres")) as ledger:
            self._known = register_pipeline(ledger, self._pipeline, check_contract(spark, self._contract))
        elsewhere = replace(self._pipeline, storage=StoragePolicy(f"/bench/{topic}-few"))
        self._kept = open_pipeline(elsewhere, "bench")
        self._queries = BatchQueries(spark, self._kept.__enter__())  # ends with this process

    def land(self) -> float:
        """Land the whole topic in files of its own, by a query of its own."""
        elsewhere = replace(self._pipeline, storage=StoragePolicy(f"/bench/ours{next(_runs)}"))
        with open_pipeline(elsewhere, "bench") as context:
            queries = BatchQueries(self._spark, context)
            took, done = self._land(queries, self._ranges)
        rows = [_expect_row(window, self._windows) for window in range(self._windows)]
        self._require(sorted(done.rows) == rows and len(done.landings) == self._windows)
        return took

    def land_few(self) -> float:
        """Land the next records of the topic, by the query that is kept."""
        each, at = FEW // PARTITIONS, next(self._few) * FEW // PARTITIONS
        took, done = self._land(self._queries, [replace(r, start=at, end=at + each) for r in self._ranges])
        self._require(sum(piece.digest.records for piece in done.read) == FEW)
        return took

    def read_few(self) -> float:
        """Read as many records, and do nothing with them."""
        started = time.monotonic()
        few = [replace(r, end=FEW // PARTITIONS) for r in self._ranges]
        read_ranges(self._spark, self._source, few).write.format("noop").mode("append").save()
        return time.monotonic() - started

    def write_by_stream(self) -> float:
        def write(path: str) -> None:
            write_by_window(self._spark, address("kafka"), self._contract.topic, path, CONTRACT.window_minutes)

        return self._write(write)

    def write_by_job(self) -> float:
        def write(path: str) -> None:
            text = F.col("value").cast("string")
            at = F.get_json_object(text, "$.at").cast("bigint")
            rows = read_ranges(self._spark, self._source, self._ranges).select(
                text.alias("value"), F.floor(at / 3_600_000).alias("window")
            )
            rows.write.partitionBy("window").text(path)

        return self._write(write)

    def _land(self, queries: BatchQueries, ranges: Sequence[OffsetRange]) -> tuple[float, BatchResult]:
        known: RegisteredPipeline = self._known
        started = time.monotonic()
        shards = cut_into_shards("backlog", ranges, self._spark.sparkContext.defaultParallelism)
        find = partial(queries.find, known, self._source, shards, None)
        done = MicroBatch(self._spark, queries.context, find, ranges, shards).append()
        took = time.monotonic() - started
        require_all_landed(done.read, done.landings)
        return took, done

    def _write(self, write: Callable[[str], None]) -> float:
        path = f"{address('hdfs')}/bench/peer{next(_runs)}"
        started = time.monotonic()
        write(path)
        took = time.monotonic() - started
        written = self._spark.read.text(path)
        self._require((written.count(), written.select("window").distinct().count()) == (RECORDS, self._windows))
        return took

    def _require(self, is_right: bool) -> None:
        self.correct = self.correct and is_right


def _expect_row(window: int, windows: int) -> bytes:
    """Return the window's row, by what was produced."""
    numbers = [n for n in range(RECORDS) if n * windows // RECORDS == window]
    start = START + timedelta(hours=window)
    return f"{start:%Y-%m-%d %H:%M:%S}+00\t{len(numbers)}\t{sum(n % 1000 for n in numbers)}".encode()


def _produce(topic: str, windows: int) -> None:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1, config={"retention.ms": "-1"})
    admin.create_topics([new])[topic].result(30)
    producer = Producer({"bootstrap.servers": address("kafka"), "linger.ms": 50, "batch.num.messages": 10_000,
                         "queue.buffering.max.messages": 500_000})  # fmt: skip
    for n in range(RECORDS):
        body = {"at": START_MS + n * windows * 3_600_000 // RECORDS, "kind": "abc"[n % 3], "amount": n % 1000}
        bare = json.dumps(body | {"pad": ""})
        value = json.dumps(body | {"pad": "x" * (200 - len(bare))}).encode()
        while True:
            try:
                producer.produce(topic, value, partition=n % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("the broker did not take all records")
