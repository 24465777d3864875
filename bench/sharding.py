"""A batch read and worked on, by how its offset ranges are cut: as they are, repartitioned, or sharded beforehand.

The work is Spark's: each record's value is hashed some hundred times, so a batch takes seconds and a core that is idle
shows. All four read with the pipeline's own reader.
"""

from __future__ import annotations

import os
import time
import uuid
from statistics import median

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.table import Row
from onceover.config.endpoints import address
from onceover.kafka import Topic
from onceover.kafka.reader import KafkaSource
from onceover.model.batch_plan import cut_into_shards
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.spark.session import build
from onceover.spark.source import read_ranges

RECORDS = 4 * 40_000 * 4  # 4 s of 40,000 records/s in each of 4 Kafka partitions
ROUNDS = 10
SHAPES = {
    "1 partition": [1.0],
    "2 partitions": [0.5, 0.5],
    "2 partitions, 80 % in one": [0.8, 0.2],
    "4 partitions": [0.25] * 4,
    "4 partitions, 80 % in one": [0.8, 0.2 / 3, 0.2 / 3, 0.2 / 3],
}
BEST = 1.05
REPARTITION = 0.71


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    quick = os.environ.get("BENCH") == "quick"
    times, records = (1, RECORDS // 4) if quick else (5, RECORDS)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[2] --driver-memory 2g pyspark-shell")
    spark = build("bench sharding")
    rows: list[Row] = []
    for shape, shares in SHAPES.items():
        print(f"  sharding: {shape}", flush=True)
        rows += _compare(spark, shape, [int(records * share) for share in shares], times)
    spark.stop()
    return rows, [f"{records:,} records a batch, {ROUNDS} hashes each; `backlog` is the default"]


def _compare(spark: SparkSession, work: str, sizes: list[int], times: int) -> list[Row]:
    name, source, ranges = _filled(sizes)
    cores = spark.sparkContext.defaultParallelism
    took: dict[str, list[float]] = {name: [] for name in ("none", "lcm", "backlog", "repartition")}
    results: set[tuple[int, int]] = set()
    for n in range(times + 1):
        for rule in took:
            started = time.monotonic()
            read = read_ranges(spark, source, cut_into_shards("none" if rule == "repartition" else rule, ranges, cores))
            if rule == "repartition":
                read = read.repartition(cores)
            value = F.hex("value")
            for _ in range(ROUNDS):
                value = F.sha2(value, 256)
            (of_all,) = read.select(F.sum(F.crc32(value)).alias("s"), F.count("offset").alias("n")).collect()
            if n:
                took[rule].append(time.monotonic() - started)
            results.add((of_all.s, of_all.n))
    admin = _admin()  # its futures end with it, so it is kept
    admin.delete_topics([name])[name].result(30)
    middle = {rule: median(each) for rule, each in took.items()}
    best = min(middle, key=lambda rule: middle[rule])

    correct = len(results) == 1 and all(records == sum(sizes) for _, records in results)

    def row(rule: str, peer: str, most: float | None) -> Row:
        ratio, goal = middle[rule] / middle[peer], "reported" if most is None else f"<= {most}"
        met = most is None or ratio <= most
        return Row(f"{work}, {rule}", middle[rule], middle[peer], peer, "s", ratio, goal, met, correct, times)

    is_short = len(sizes) < cores
    return [
        row("backlog", "repartition", REPARTITION if is_short else None),
        row("backlog", best, BEST),
        row("lcm", "repartition", REPARTITION if is_short else None),
        row("none", "repartition", None),
    ]


def _filled(sizes: list[int]) -> tuple[str, KafkaSource, list[OffsetRange]]:
    name = f"shards-{uuid.uuid4().hex[:8]}"
    admin = _admin()
    admin.create_topics([NewTopic(name, len(sizes), 1)])[name].result(30)
    producer = Producer({"bootstrap.servers": address("kafka"), "linger.ms": 50, "queue.buffering.max.messages": 10**6})
    for kafka_partition, size in enumerate(sizes):
        for n in range(size):
            producer.produce(name, b"%d-%d" % (kafka_partition, n), partition=kafka_partition)
            if n % 10_000 == 0:
                producer.poll(0)
    producer.flush(120)
    facts = Topic(address("kafka"), name, "read_committed", {}).facts()
    ranges = [OffsetRange(KafkaPartition(facts.generation, p), 0, end) for p, end in facts.end.items()]
    return name, KafkaSource(address("kafka"), facts.topic, facts.topic_id), ranges


def _admin() -> AdminClient:
    return AdminClient({"bootstrap.servers": address("kafka")})
