"""The same records as JSON, as Avro, as CSV, compressed, framed and with headers: what each costs ingest beside JSON.

The columns of all lines in raw, by window, are compared among the formats after every run.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import fastavro
import zstandard
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.ingest import PARTITIONS, START_MS, make_contract
from bench.ingest_peer import WINDOW_MS
from bench.processor_time import Processes, ProcessorTime
from bench.table import Row, alternate_all, middle, runs
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
from onceover.model.contract import Contract, CsvLayout, Key
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.pipeline import IngestPolicy, Pipeline, RepairPolicy, StoragePolicy
from onceover.raw.hdfs import connect_hdfs
from onceover.spark.contract_check import check_contract
from onceover.spark.session import build
from onceover_local.stack import Stack

RECORDS, QUICK_RECORDS, WINDOWS = 500_000, 50_000, 7
ROOT = "/bench/formats"
_FIRST_COLUMN = 7  # of the fields of a line that TABs part
_COMPRESS = zstandard.ZstdCompressor()
_AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "at", "type": "long"},
        {"name": "kind", "type": "string"},
        {"name": "amount", "type": "int"},
        {"name": "pad", "type": "string"},
    ],
}
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "json": {},
    "json with a header as key": {"keys": (Key("kind", "header('kind')"),)},
    "json in the wire format": {"wire_format": "confluent"},
    "json in zstd": {"compression": "zstd"},
    "csv": {
        "format": "csv",
        "schema": "at BIGINT, kind STRING, amount INT, pad STRING",
        "csv": CsvLayout(",", '"', ""),
    },
    "avro": {"format": "avro", "wire_format": "confluent", "schema": "", "reader_schema": json.dumps(_AVRO)},
}
_MOST = {"avro": 1.0}
"""Of JSON's processor time; of all others 2."""


def _write_json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()


def _write_avro(body: Mapping[str, Any]) -> bytes:
    value = io.BytesIO()
    value.write(b"\0" + _register_schema().to_bytes(4))
    fastavro.schemaless_writer(value, _parse_schema(), body)
    return value.getvalue()


@lru_cache(maxsize=1)
def _register_schema() -> int:
    with SchemaRegistryClient({"url": address("registry")}) as client:
        return int(client.register_schema("bench-formats-value", Schema(json.dumps(_AVRO))))


@lru_cache(maxsize=1)
def _parse_schema() -> Any:
    return fastavro.parse_schema(_AVRO)


_VALUES: Mapping[str, Callable[[Mapping[str, Any]], bytes]] = {
    "json": _write_json,
    "json with a header as key": _write_json,
    "json in the wire format": lambda body: b"\0\0\0\0\7" + _write_json(body),
    "json in zstd": lambda body: _COMPRESS.compress(_write_json(body)),
    "csv": lambda body: ",".join(map(str, body.values())).encode(),
    "avro": _write_avro,
}


@dataclass(slots=True)
class _FormatBench:
    """One format's topic and its ingest."""

    spark: SparkSession
    processes: Processes
    format: str
    records: int
    used: list[ProcessorTime] = field(default_factory=list)
    digest: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        return "".join(letter if letter.isalnum() else "_" for letter in f"bench_{self.format}")

    @property
    def contract(self) -> Contract:
        return replace(make_contract(self.topic), **_CHANGES[self.format])

    def run(self) -> float:
        """Ingest all once; return the processor seconds of Python and the JVM."""
        facts = Topic(address("kafka"), self.topic, "read_committed", {}).facts()
        source = KafkaSource(address("kafka"), facts.topic, facts.topic_id)
        ranges = [OffsetRange(KafkaPartition(facts.generation, p), 0, facts.end[p]) for p in facts.end]
        policy = IngestPolicy(0, 1, 1, self.records, "kafka", "", self.topic, "read_committed", "earliest")
        pipeline = Pipeline(self.topic, self.contract, policy, StoragePolicy(ROOT), RepairPolicy(3))
        with connect(address("postgres")) as ledger:
            known = register_pipeline(ledger, pipeline, check_contract(self.spark, self.contract))
        with open_pipeline(pipeline, "bench") as context:
            shards = cut_into_shards("backlog", ranges, self.spark.sparkContext.defaultParallelism)
            query = BatchQueries(self.spark, context).find(known, source, shards, None)
            before = self.processes.read_time()
            done = append_batch(self.spark, context, lambda: query, ranges, shards)
            self.used.append(self.processes.read_time() - before)
            require_all_landed(done.read, done.landings)
        self.digest = self._digest_columns()
        connect_hdfs(address("webhdfs")).delete(f"{ROOT}/{self.topic}", recursive=True)
        return self.used[-1].own

    def _digest_columns(self) -> dict[int, tuple[int, int]]:
        """Return by window the number of lines, and a sum of the hashes of their columns."""
        path = f"{address('hdfs')}{ROOT}/{self.topic}"
        lines = self.spark.read.text(path, recursiveFileLookup=True, pathGlobFilter="*.log").where("value <> ''")
        fields = F.split("value", "\t")
        columns = F.slice(fields, _FIRST_COLUMN + 1, F.size(fields) - _FIRST_COLUMN - 1)  # all but the hash
        at = fields[_FIRST_COLUMN - 3]
        rows = lines.select(F.floor(at.try_cast("bigint") / WINDOW_MS).alias("window"), F.hash(at, columns).alias("h"))
        summed = rows.groupBy("window").agg(F.count("*").alias("n"), F.sum(F.col("h").cast("bigint")).alias("h"))
        return {row.window: (row.n, row.h) for row in summed.collect()}


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[2] --driver-memory 4g pyspark-shell")
    # A new topic makes a worker new clients, 25 MB that malloc does not give back: of some 25, its limit is met.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    records = QUICK_RECORDS if os.environ.get("BENCH") == "quick" else RECORDS
    spark = build("bench formats")
    stack = Stack(Path(os.environ["ONCEOVER_LOCAL"]))
    stack.up({"registry"})
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    processes = Processes(jvm, [stack.find_pid(name) for name in ("namenode", "datanode1")])
    benches = [_FormatBench(spark, processes, name, records) for name in _CHANGES]
    for bench in benches:
        _produce(bench)
    seconds = [middle(each) for each in alternate_all([bench.run for bench in benches], runs())]
    json_bench, json_seconds = benches[0], seconds[0]
    whole = len(json_bench.digest) == WINDOWS and sum(count for count, _ in json_bench.digest.values()) == records
    rows = [
        Row(f"{records:,} records of {bench.format}", took, json_seconds, "json", "processor s", took / json_seconds,
            f"<= {most:.3g}", took <= most * json_seconds, whole and bench.digest == json_bench.digest, runs())
        for bench, took in zip(benches[1:], seconds[1:], strict=True)
        for most in [_MOST.get(bench.format, 2.0)]
    ]  # fmt: skip
    notes = []
    for bench in benches:
        python, in_jvm = (middle([getattr(each, name) for each in bench.used[1:]]) for name in ("python", "jvm"))
        million = 1_000_000 / records
        notes.append(f"{bench.format}: {python * million:.1f} s a million in Python, {in_jvm * million:.1f} in the JVM")
    spark.stop()
    return rows, notes


def _produce(bench: _FormatBench) -> None:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    topic = NewTopic(bench.topic, num_partitions=PARTITIONS, replication_factor=1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[bench.topic].result(30)
    producer = Producer({"bootstrap.servers": address("kafka"), "queue.buffering.max.messages": 1_000_000})
    write = _VALUES[bench.format]
    for n in range(bench.records):
        at = START_MS + n * WINDOWS * WINDOW_MS // bench.records
        body: dict[str, Any] = {"at": at, "kind": "abc"[n % 3], "amount": n % 1000, "pad": f"{n:0130}"}
        headers = [("trace", b"%d" % n), ("kind", body["kind"].encode())] if "header" in bench.format else []
        producer.produce(bench.topic, write(body), partition=n % PARTITIONS, headers=headers)
        if n % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("the broker did not take all records")
