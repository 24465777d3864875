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
from onceover.endpoints import address
from onceover.kafka import Topic
from onceover.offsets import KafkaPartition, OffsetRange
from onceover.shards import sharded
from onceover.spark.session import build
from onceover.spark.source import KafkaSource, read_ranges

RECORDS = 160_000
ROUNDS = 40
BEST = 1.05
REPARTITION = 0.71


def run() -> tuple[list[Row], list[str]]:
    """Rows for `bench.table.show`, and what is worth saying beside them."""
    times = 1 if os.environ.get("BENCH") == "quick" else 5
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[2] --driver-memory 2g pyspark-shell")
    spark = build("bench sharding")
    rows: list[Row] = []
    for partitions in (1, 2, 4):
        for shape, shares in (("balanced", [1 / partitions] * partitions), ("skewed", _skewed(partitions))):
            if shape == "skewed" and partitions == 1:
                continue
            rows += _compare(spark, f"{partitions} partitions, {shape}", [int(RECORDS * s) for s in shares], times)
    spark.stop()
    return rows, [f"{RECORDS:,} records a batch, {ROUNDS} hashes each, on {os.cpu_count()} cores"]


def _skewed(partitions: int) -> list[float]:
    return [0.8, *([0.2 / (partitions - 1)] * (partitions - 1))] if partitions > 1 else [1.0]


def _compare(spark: SparkSession, work: str, sizes: list[int], times: int) -> list[Row]:
    source, ranges = _filled(sizes)
    cores = spark.sparkContext.defaultParallelism
    took: dict[str, list[float]] = {name: [] for name in ("none", "lcm", "backlog", "repartition")}
    sums: set[int] = set()
    for n in range(times + 1):
        for rule in took:
            started = time.monotonic()
            read = read_ranges(spark, source, sharded("none" if rule == "repartition" else rule, ranges, cores))
            if rule == "repartition":
                read = read.repartition(cores)
            value = F.hex("value")
            for _ in range(ROUNDS):
                value = F.sha2(value, 256)
            (row,) = read.select(F.sum(F.crc32(value)).alias("s"), F.count("offset").alias("n")).collect()
            if n:
                took[rule].append(time.monotonic() - started)
            sums.add(row.s * 1_000_003 + row.n)
    middle = {rule: median(found) for rule, found in took.items()}
    best = min(middle.values())
    is_short_of_partitions = len(sizes) < cores
    for_repartition = f"<= {REPARTITION}" if is_short_of_partitions else "reported"
    return [
        *(
            Row(f"{work}, {rule}", middle[rule], middle["repartition"], "repartition", "s",
                middle[rule] / middle["repartition"], for_repartition if rule != "none" else "reported",
                rule == "none" or not is_short_of_partitions or middle[rule] <= REPARTITION * middle["repartition"],
                len(sums) == 1, times)
            for rule in ("lcm", "backlog", "none")
        ),
        Row(f"{work}, backlog", middle["backlog"], best, "the best", "s", middle["backlog"] / best, f"<= {BEST}",
            middle["backlog"] <= BEST * best, len(sums) == 1, times),
    ]  # fmt: skip


def _filled(sizes: list[int]) -> tuple[KafkaSource, list[OffsetRange]]:
    name = f"shards-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address("kafka")})
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
    return KafkaSource(address("kafka"), facts.topic, facts.topic_id), ranges
