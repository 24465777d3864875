"""One million records of 200 bytes from Kafka into window files on HDFS, beside Spark's own writer on the same reader.

Onceover reads, interprets, frames with ID, hash and digest, and appends one file a window. The peer writes the same
values as text, partitioned by window, without any of these, as a plain Spark job would.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import functions as F

from bench.table import Row, alternate, middle, runs
from onceover.config.endpoints import address
from onceover.context import open_pipeline
from onceover.ingest.batch_queries import BatchQueries
from onceover.ingest.micro_batch import MicroBatch
from onceover.kafka import Topic
from onceover.ledger.catalog import register_pipeline
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
PARTITIONS = 4
WINDOWS = 7
START_MS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000)
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


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    _produce()
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[2] --driver-memory 4g pyspark-shell")
    spark = build("bench ingest")
    facts = Topic(address("kafka"), CONTRACT.topic, "read_committed", {}).facts()
    source = KafkaSource(address("kafka"), facts.topic, facts.topic_id)
    ranges = [OffsetRange(KafkaPartition(facts.generation, p), 0, facts.end[p]) for p in facts.end]
    policy = IngestPolicy(0, 1, 1, RECORDS, "kafka", "", "bench", "read_committed", "earliest")
    pipeline = Pipeline("bench", CONTRACT, policy, StoragePolicy("/bench"), RepairPolicy(3))
    with connect(address("postgres")) as ledger:
        known = register_pipeline(ledger, pipeline, check_contract(spark, CONTRACT))
    landed: list[int] = []
    split: list[tuple[float, float]] = []
    written: list[int] = []

    def ours() -> float:
        elsewhere = replace(pipeline, storage=StoragePolicy(f"/bench/ours{len(landed)}"))
        with open_pipeline(elsewhere, "bench") as context:
            started = time.monotonic()
            shards = cut_into_shards("backlog", ranges, spark.sparkContext.defaultParallelism)
            query = BatchQueries(spark, context).find(known, source, shards, None)
            done = MicroBatch(spark, context, lambda: query, ranges, shards).append()
            took = time.monotonic() - started
        require_all_landed(done.read, done.landings)
        landed.append(sum(each.digest.records for each in done.landings))
        return took

    def peer() -> float:
        path = f"{address('hdfs')}/bench/peer{len(written)}"
        started = time.monotonic()
        at = F.get_json_object(F.col("value").cast("string"), "$.at").cast("bigint")
        rows = read_ranges(spark, source, ranges).select(F.col("value").cast("string").alias("value"),
                                                         F.floor(at / 3_600_000).alias("window"))  # fmt: skip
        rows.write.partitionBy("window").text(path)
        took = time.monotonic() - started
        written.append(spark.read.text(path).count())
        return took

    def read_only() -> float:
        started = time.monotonic()
        read_ranges(spark, source, ranges).write.format("noop").mode("append").save()
        return time.monotonic() - started

    ours_s, peer_s = alternate(ours, peer, runs())
    read_s = min(read_only() for _ in range(2))
    spark.stop()
    correct = set(landed) == {RECORDS} and set(written) == {RECORDS}
    pace, peer_pace = RECORDS / middle(ours_s), RECORDS / middle(peer_s)
    framing, appending = (middle([pair[i] for pair in split[1:]]) for i in (0, 1))
    rows = [
        Row("Kafka to window files, warm", pace, peer_pace, "Spark's text writer by window", "records/s",
            pace / peer_pace, "200,000", pace >= 200_000, correct, len(ours_s)),
    ]  # fmt: skip
    notes = [
        f"split of ours, seconds: read {read_s:.1f}, frame (and interpret, digest) {framing - read_s:.1f}, "
        f"append (with the shuffle by window) {appending:.1f}; {RECORDS:,} records of 200 bytes, {PARTITIONS} Kafka "
        f"partitions, {WINDOWS} windows, {os.cpu_count()} cores",
    ]
    return rows, notes


def _produce() -> None:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    topic = NewTopic(CONTRACT.topic, num_partitions=PARTITIONS, replication_factor=1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[CONTRACT.topic].result(30)
    producer = Producer({"bootstrap.servers": address("kafka"), "linger.ms": 50, "batch.num.messages": 10_000,
                         "queue.buffering.max.messages": 500_000})  # fmt: skip
    for n in range(RECORDS):
        body = {"at": START_MS + n * WINDOWS * 3_600_000 // RECORDS, "kind": "abc"[n % 3], "amount": n % 1000}
        bare = json.dumps(body | {"pad": ""})
        value = json.dumps(body | {"pad": "x" * (200 - len(bare))}).encode()
        while True:
            try:
                producer.produce(CONTRACT.topic, value, partition=n % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("the broker did not take all records")
