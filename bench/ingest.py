"""Records of 200 bytes from Kafka into window files on HDFS and into aggregated rows, beside Structured Streaming.

Onceover reads, interprets, frames each record with its ID and hashes, appends one file a window, proves that what
landed is what was read, and groups the aggregates. The peer writes the same values by window, and none of these. The
values of both are compared, by window, after every run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from hdfs import Client
from pyspark.sql import SparkSession

from bench.ingest_peer import WINDOW_MS, digest_by_window, digest_lines, list_connector_jars, write_by_window
from bench.processor_time import Processes, ProcessorTime
from bench.table import Row, alternate, middle, runs
from onceover.config.endpoints import address
from onceover.context import open_pipeline
from onceover.ingest.batch_queries import BatchQueries
from onceover.ingest.micro_batch import append_batch
from onceover.kafka import Topic
from onceover.kafka.reader import KafkaSource
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import connect
from onceover.model.batch import require_all_landed
from onceover.model.batch_plan import cut_into_shards
from onceover.model.contract import Contract, Key
from onceover.model.measures import Measure
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.pipeline import IngestPolicy, Pipeline, RepairPolicy, StoragePolicy
from onceover.raw.hdfs import connect_hdfs
from onceover.spark.contract_check import check_contract
from onceover.spark.session import build
from onceover_local.stack import Stack

PARTITIONS = 4
ROOT = "/bench/ours"
SMALL = 400
CASES = ((1_000_000, 7), (1_000_000, 1), (SMALL, 1))  # records, windows
QUICK = ((100_000, 7), (SMALL, 1))
GOAL_PACE, GOAL_RATIO, GOAL_SMALL_SECONDS = 100_000, 1 / 0.35, 0.5
START_MS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000)


@dataclass(slots=True)
class Bench:
    """One case: `records` of a topic, in so many windows."""

    spark: SparkSession
    processes: Processes
    hdfs: Client
    name: str
    records: int
    windows: int
    used: dict[str, list[ProcessorTime]] = field(default_factory=dict)
    correct: bool = True
    digests: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def run(self) -> tuple[float, float]:
        """Return the median seconds of ours and of the peer."""
        _produce(self.name, self.records, self.windows)
        contract = make_contract(self.name)
        facts = Topic(address("kafka"), self.name, "read_committed", {}).facts()
        source = KafkaSource(address("kafka"), facts.topic, facts.topic_id)
        ranges = [OffsetRange(KafkaPartition(facts.generation, p), 0, facts.end[p]) for p in facts.end]
        policy = IngestPolicy(0, 1, 1, self.records, "kafka", "", self.name, "read_committed", "earliest")
        pipeline = Pipeline(self.name, contract, policy, StoragePolicy(ROOT), RepairPolicy(3))
        with connect(address("postgres")) as ledger:
            known = register_pipeline(ledger, pipeline, check_contract(self.spark, contract))
        numbers = count()
        with open_pipeline(pipeline, "bench") as context:
            queries = BatchQueries(self.spark, context)

            def land() -> None:
                shards = cut_into_shards("backlog", ranges, self.spark.sparkContext.defaultParallelism)
                query = queries.find(known, source, shards, None)
                done = append_batch(self.spark, context, lambda: query, ranges, shards)
                require_all_landed(done.read, done.landings)

            def land_and_compare() -> float:
                took = self._measure("ours", land)
                self._compare(digest_lines(self.spark, f"{address('hdfs')}{ROOT}/{self.name}"))
                self.hdfs.delete(f"{ROOT}/{self.name}", recursive=True)
                return took

            def write_and_compare() -> float:
                path = f"{address('hdfs')}/bench/peer-{self.name}-{next(numbers)}"
                took = self._measure("peer", lambda: write_by_window(self.spark, address("kafka"), self.name, path))
                self._compare(digest_by_window(self.spark, path))
                return took

            ours, peer = alternate(land_and_compare, write_and_compare, runs())
        return middle(ours), middle(peer)

    def describe(self) -> str:
        """Say in words the medians of processor seconds, without the first run."""
        said = []
        for who, used in self.used.items():
            own, jvm, hdfs = (middle([getattr(each, name) for each in used[1:]]) for name in ("own", "jvm", "hdfs"))
            said.append(f"{who} {own:.2f} ({jvm:.2f} in the JVM), and {hdfs:.2f} in HDFS")
        return f"{self.records:,} records, {self.windows} windows, processor seconds: {'; '.join(said)}"

    def _measure(self, who: str, work: Callable[[], None]) -> float:
        before, started = self.processes.read_time(), time.monotonic()
        work()
        took = time.monotonic() - started
        self.used.setdefault(who, []).append(self.processes.read_time() - before)
        return took

    def _compare(self, digests: Mapping[int, tuple[int, int]]) -> None:
        """Note whether these are the digests of all earlier runs, of all records and windows."""
        self.digests = self.digests or digests
        whole = sum(count for count, _ in digests.values()) == self.records and len(digests) == self.windows
        self.correct = self.correct and whole and digests == self.digests


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    os.environ.setdefault(
        "PYSPARK_SUBMIT_ARGS", f"--master local[2] --driver-memory 4g --jars {list_connector_jars()} pyspark-shell"
    )
    spark = build("bench ingest")
    stack = Stack(Path(os.environ["ONCEOVER_LOCAL"]))
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    processes = Processes(jvm, [stack.find_pid(name) for name in ("namenode", "datanode1")])
    rows: list[Row] = []
    notes: list[str] = []
    for records, windows in QUICK if os.environ.get("BENCH") == "quick" else CASES:
        bench = Bench(spark, processes, connect_hdfs(address("webhdfs")), f"bench{records}x{windows}", records, windows)
        ours, peer = bench.run()
        work, name = f"{records:,} records, {windows} windows", "Structured Streaming, text by window"
        if records == SMALL:
            goal, met = f"<= {GOAL_SMALL_SECONDS} s", ours <= GOAL_SMALL_SECONDS
            rows.append(Row(work, ours, peer, name, "s", ours / peer, goal, met, bench.correct, runs()))
        else:
            goal = f">= {GOAL_PACE:,}, {GOAL_RATIO:.1f} times the peer"
            met = records / ours >= GOAL_PACE and peer / ours >= GOAL_RATIO
            pace = (records / ours, records / peer)
            rows.append(Row(work, *pace, name, "records/s", peer / ours, goal, met, bench.correct, runs()))
        notes.append(bench.describe())
    spark.stop()
    return rows, notes


def make_contract(topic: str) -> Contract:
    return Contract(
        topic=topic,
        window_minutes=WINDOW_MS // 60_000,
        format="json",
        schema="at BIGINT, kind STRING, amount INT",
        required=("at",),
        event_time="value.at",
        tombstone="quarantine",
        keys=(Key("kind", "value.kind"),),
        measures=(Measure("events", "count", "*"), Measure("amount", "sum", "value.amount")),
        horizon_ms=None,
        skew_ms=None,
    )


def _produce(name: str, records: int, windows: int) -> None:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    topic = NewTopic(name, num_partitions=PARTITIONS, replication_factor=1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[name].result(30)
    producer = Producer({"bootstrap.servers": address("kafka"), "linger.ms": 50, "batch.num.messages": 10_000,
                         "queue.buffering.max.messages": 500_000})  # fmt: skip
    for n in range(records):
        body = {"at": START_MS + n * windows * WINDOW_MS // records, "kind": "abc"[n % 3], "amount": n % 1000}
        bare = json.dumps(body | {"pad": ""})
        value = json.dumps(body | {"pad": "x" * (200 - len(bare))}).encode()
        while True:
            try:
                producer.produce(name, value, partition=n % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("the broker did not take all records")
