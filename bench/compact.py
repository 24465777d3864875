"""A year of real flights compacted: its size beside the text's, and a repair's reading of either.

336,776 flights as the JSON of the data file's rows, a window a day, ingested by the pipeline's own driver. What is
timed is all of a repair but the database: read, verified against every landing, deduplicated, aggregated, COPY text.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import SparkSession

from bench.table import Row, alternate, middle, results, runs
from onceover.compaction.job import CompactionResult, CompactRun
from onceover.config.endpoints import address, locate_hdfs
from onceover.context import PipelineContext, open_pipeline
from onceover.detection import detect as detecting
from onceover.fault_points import FaultPoint
from onceover.ingest.job import build_driver, open_source
from onceover.ledger import compactions, drivers
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.certificates import read_certificate
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import Digest
from onceover.model.raw_file import CompactedFile
from onceover.raw.frozen_file import FrozenText
from onceover.raw.window_files import WindowFiles
from onceover.repair.folded import FoldedRebuild, list_compacted, list_texts
from onceover.repair.proof import prove
from onceover.spark.contract_check import check_contract
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.session import COMPILED_FROM_BYTES, build, choose_codegen
from onceover_demo.flights import csv_rows

NAME = "compacted"
PARTITIONS = 4
TOML = f"""
[contract]
topic = "{NAME}"
window_minutes = 1440
format = "json"
schema = "at BIGINT, origin STRING, carrier STRING, distance STRING"
required = ["at"]
event_time = "value.at"
[contract.keys]
origin = "value.origin"
carrier = "value.carrier"
[contract.measures]
flights = {{ count = "*" }}
miles = {{ sum = "cast(value.distance AS BIGINT)" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
idle_after = "1ms"
max_records_per_batch = 50_000
"""
Said = tuple[dict[datetime, Digest], list[str]]


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    folder = results() / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.toml").write_text(TOML)
    os.environ["ONCEOVER_PIPELINES"] = str(folder)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[2] --driver-memory 4g pyspark-shell")
    _produce(2 if os.environ.get("BENCH") == "quick" else 12)
    spark = build("bench compact")
    with open_pipeline(NAME, "bench") as context:
        known = _ingested(spark, context)
        detecting.detect(context, who="bench", why="bench")
        started = time.monotonic()
        due = compactions.list_compactable(context.ledger, NAME, 0, None, None)
        ended = CompactRun(spark, context, known, FaultPoint()).run(due)
        compacted_s = time.monotonic() - started
        claimed = [read_certificate(context.ledger, NAME, one.due.window_start).claimed for one in ended]
    rows = _compared(spark, known, context.files, claimed, ended)
    spark.stop()
    return rows, [f"written, read back and noted in {compacted_s:.0f} s, on a Spark that was warm"]


def _compared(
    spark: SparkSession,
    known: RegisteredPipeline,
    files: WindowFiles,
    claimed: Sequence[ClaimedWindow],
    ended: Sequence[CompactionResult],
) -> list[Row]:
    text = list_texts(files, files.read_lengths(one.due.window_start for one in ended))
    substitutes = {one.due.window_start: CompactedFile(one.due.digest, one.bytes or 0) for one in ended}
    compacted = list_compacted(files, [replace(one, compacted=substitutes[one.window_start]) for one in claimed])
    certified = {one.due.window_start: one.due.digest for one in ended}
    said: list[Said] = []

    def timed(texts: Mapping[datetime, FrozenText], replacing: Mapping[datetime, FrozenText]) -> float:
        started = time.monotonic()
        with (
            choose_codegen(spark, COMPILED_FROM_BYTES),
            closing(
                FoldedRebuild(spark, locate_hdfs(), known.contracts, claimed, (), (), texts, compacted=replacing)
            ) as rebuild,
        ):
            found = rebuild.collect()
            rows = sorted(format_copy_lines(rebuild.aggregate(), known.columns.staged))
        took = time.monotonic() - started
        proved = all(prove(one, found[one.window_start]).is_proved for one in claimed)
        said.append(({start: rebuilt.digest for start, rebuilt in found.items()} if proved else {}, rows))
        return took

    ours, peer = alternate(lambda: timed({}, compacted), lambda: timed(text, {}), runs())
    correct = all(one.why is None for one in ended) and all(each == (certified, said[0][1]) for each in said)
    records = sum(digest.records for digest in certified.values())
    mib, text_mib = (sum(n or 0 for n in each) / 2**20 for each in (
        (one.bytes for one in ended), (one.due.text_bytes for one in ended)))  # fmt: skip
    seconds, text_seconds = middle(ours), middle(peer)
    work = f"{len(ended)} windows, {records:,} records"
    return [
        Row(f"size of {work}", mib, text_mib, "their text", "MiB", mib / text_mib, "< 1", mib < text_mib, correct, 1),
        Row(f"reading for a repair of {work}", seconds, text_seconds, "their text", "s", seconds / text_seconds,
            "<= 1", seconds <= text_seconds, correct, len(ours)),
    ]  # fmt: skip


def _ingested(spark: SparkSession, context: PipelineContext) -> RegisteredPipeline:
    """Land everything and close every window."""
    pipeline, ledger = context.pipeline, context.ledger
    with open_source(context) as (topic, offsets):
        known = register_pipeline(ledger, pipeline, check_contract(spark, pipeline.contract))
        epoch = drivers.acquire(ledger, NAME, "bench")
        try:
            ingest = build_driver(spark, context, epoch, known, topic, offsets, FaultPoint())
            while not ingest.turn().every_window_closed:
                pass
        finally:
            drivers.end_epoch(ledger, epoch)
    return known


def _produce(months: int) -> None:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    topic = NewTopic(NAME, num_partitions=PARTITIONS, replication_factor=1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[NAME].result(30)
    producer = Producer(
        {"bootstrap.servers": address("kafka"), "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    )
    for n, row in enumerate(csv_rows()):
        if int(row["month"]) > months:
            continue
        clock = int(row["sched_dep_time"])
        at = datetime(int(row["year"]), int(row["month"]), int(row["day"]), clock // 100, clock % 100, tzinfo=UTC)
        value = json.dumps({"at": int(at.timestamp() * 1000), **row}, separators=(",", ":")).encode()
        producer.produce(NAME, value, row["tailnum"].encode(), partition=n % PARTITIONS)
        if n % 1000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("the broker did not take all records")
