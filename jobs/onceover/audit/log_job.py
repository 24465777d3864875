"""The audit of a log: Kafka's log compared with raw and the aggregates, window by window."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from onceover.audit import store as audit_store
from onceover.audit.comparison import Comparison, read_log, read_raw
from onceover.audit.result import Difference, WindowAudit
from onceover.context import PipelineContext
from onceover.kafka.topic import Topic
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.expiries import list_expired
from onceover.ledger.releases import list_releases
from onceover.model.batch_plan import cut_into_shards
from onceover.model.json_text import to_plain
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import to_ms
from onceover.spark.aggregate import aggregate
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.session import choose_codegen
from onceover.spark.source import KafkaSource
from onceover.spark.text_files import QUARANTINE

MOST_ROWS = 20
MOST_WINDOWS = 5_000  # in a result; of more windows, only those that differ


def audit_log(
    spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline, audit: audit_store.Audit
) -> dict[str, Any]:
    """Compare Kafka's log, raw and aggregates of the audit's range; without a range, of all windows and quarantine.

    Leaves out what the log no longer holds (expired offsets, earlier generations); the result says so. Changes nothing.
    """
    connection, files, kafka = context.ledger, context.files, context.address("kafka")
    pipeline, policy = context.pipeline, context.pipeline.ingest
    with closing(Topic(kafka, pipeline.contract.topic, policy.isolation, pipeline.kafka)) as topic:
        facts, compacted = topic.facts(), topic.policy().compacted
    before = audit_store.read_windows(connection, registered.name, audit.start, audit.end)
    ranges = [
        OffsetRange(KafkaPartition(facts.generation, p), max(start, facts.earliest[p]), min(end, facts.end[p]))
        for p, (start, end) in audit_store.read_offset_bounds(
            connection, registered.name, facts.generation, audit.start, audit.end
        ).items()
        if max(start, facts.earliest[p]) < min(end, facts.end[p])
    ]
    if not ranges:
        return _build_result([], ranges, compacted, 0)
    source = KafkaSource(kafka, facts.topic, facts.topic_id, policy.isolation, pipeline.kafka)
    root, lengths = context.address("hdfs").rstrip("/"), files.read_lengths(before)
    places = [(to_ms(start), root + files.layout.window_file(start)) for start in lengths]
    in_parquet = {start: window.compacted for start, window in before.items() if window.compacted}
    parquet = {to_ms(start): root + path for start, path in files.find_parquet_files(in_parquet).items()}
    if audit.start is None:
        places += [(QUARANTINE, root + path) for path in files.list_quarantine_files()]
    released = [
        release
        for release in list_releases(connection, registered.name)
        if release.ranges[0].source.generation == facts.generation
    ]
    shards = cut_into_shards("backlog", ranges, spark.sparkContext.defaultParallelism)
    log = read_log(spark, source, shards, registered.contracts, released).persist()
    stage = f"audit:{audit.audit_id}"
    bounds = (None, None) if audit.start is None or audit.end is None else (to_ms(audit.start), to_ms(audit.end))
    try:
        raw = read_raw(spark, places, parquet, ranges, registered.contract.window_minutes, released)
        with (
            choose_codegen(spark, sum(lengths.values()) + sum(file.bytes for file in in_parquet.values())),
            closing(Comparison(log, raw, facts.generation, *bounds)) as compared,
        ):
            windows = compared.windows()
            expired_windows, expired_days = list_expired(connection, registered.name)
            for expired_window in expired_windows & windows.keys():  # no raw is left to compare
                del windows[expired_window]
            if expired_days and None in windows:  # an expired day of quarantine may have held the missing IDs
                windows[None].differences.pop(Difference.NOT_IN_RAW, None)
            counted = log.where("window_ms IS NOT NULL").transform(aggregate(registered.contract))
            registered.table.stage(connection, stage, format_copy_lines(counted, registered.columns.names))
        incomplete = audit_store.find_windows_before_log(connection, registered.name, facts.generation, facts.earliest)
        _compare_aggregates(connection, registered, stage, before, incomplete, windows, compacted)
    finally:
        log.unpersist()
        if not connection.broken:
            registered.table.unstage(connection, stage)
    after = audit_store.read_windows(connection, registered.name, audit.start, audit.end)
    for start, window in windows.items():
        if start is not None and start in before and before[start].version != after[start].version:
            window.not_compared, window.counted, window.rows = "it changed during the audit", None, None
    return _build_result(list(windows.values()), ranges, compacted, sum(w.log.digest.records for w in windows.values()))


def _compare_aggregates(
    connection: Connection,
    registered: RegisteredPipeline,
    stage: str,
    before: dict[datetime, audit_store.AuditedWindow],
    incomplete: frozenset[datetime],
    windows: dict[datetime | None, WindowAudit],
    compacted: bool,
) -> None:
    """Add the aggregates to each window that the log holds whole."""
    whole: list[datetime] = []
    for start, window in windows.items():
        if compacted and Difference.NOT_IN_LOG in window.differences:
            window.differences[Difference.COMPACTED] = window.differences.pop(Difference.NOT_IN_LOG)
            window.not_compared = "Kafka has compacted some of its records away"
        elif start is None:
            window.not_compared = "records in quarantine are not counted"
        elif start in incomplete:
            window.not_compared = "the log no longer holds all of it"
        elif start in before and before[start].is_open:
            window.not_compared = "it is open"
        else:
            whole.append(start)
    differing = registered.table.compare(connection, stage, whole, MOST_ROWS)
    for start in whole:
        windows[start].rows = differing.get(start, (0, []))
        windows[start].counted = before[start].control if start in before else None


def _build_result(
    windows: list[WindowAudit], ranges: list[OffsetRange], compacted: bool, delivered: int
) -> dict[str, Any]:
    differing = [w for w in windows if not w.is_equal]
    return {
        "equal": not differing,
        "windows": len(windows),
        "differing": len(differing),
        "offsets": sum(map(len, ranges)),
        "records": delivered,
        "compacted": compacted,
        "ranges": [r.format() for r in ranges],
        "rows": to_plain(windows if len(windows) <= MOST_WINDOWS else differing[:MOST_WINDOWS]),
    }
