"""Kafka's log read again and held against raw and the aggregates, window by window."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from onceover.audit import store as audit_store
from onceover.audit.comparison import Comparison, from_log, from_raw
from onceover.audit.result import Apart, WindowAudit
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
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.interpret import aggregate
from onceover.spark.session import choose_codegen
from onceover.spark.source import KafkaSource
from onceover.spark.text_files import QUARANTINE

MOST_ROWS = 20
MOST_WINDOWS = 5_000  # kept one by one; of more windows only those that differ are


def audit_log(
    spark: SparkSession, context: PipelineContext, known: RegisteredPipeline, audit: audit_store.Audit
) -> dict[str, Any]:
    """A three-way comparison of the windows of the audit's range, of all windows and quarantine without one.

    What the log no longer holds (expired offsets, earlier generations) is left out and said. Changes nothing.
    """
    connection, files, kafka = context.ledger, context.files, context.address("kafka")
    pipeline, policy = context.pipeline, context.pipeline.ingest
    with closing(Topic(kafka, pipeline.contract.topic, policy.isolation, pipeline.kafka)) as topic:
        facts, compacted = topic.facts(), topic.policy().compacted
    before = audit_store.read_windows(connection, known.name, audit.start, audit.end)
    ranges = [
        OffsetRange(KafkaPartition(facts.generation, p), max(start, facts.earliest[p]), min(end, facts.end[p]))
        for p, (start, end) in audit_store.read_for(
            connection, known.name, facts.generation, audit.start, audit.end
        ).items()
        if max(start, facts.earliest[p]) < min(end, facts.end[p])
    ]
    if not ranges:
        return _result([], ranges, compacted, 0)
    source = KafkaSource(kafka, facts.topic, facts.topic_id, policy.isolation, pipeline.kafka)
    root, lengths = context.address("hdfs").rstrip("/"), files.read_lengths(before)
    places = [(to_ms(start), root + files.layout.window_file(start)) for start in lengths]
    let_go = {start: one.compacted for start, one in before.items() if one.compacted}
    parquet = {to_ms(start): root + path for start, path in files.find_parquet_files(let_go).items()}
    if audit.start is None:
        places += [(QUARANTINE, root + path) for path in files.list_quarantine_files()]
    released = [
        one for one in list_releases(connection, known.name) if one.ranges[0].source.generation == facts.generation
    ]
    shards = cut_into_shards("backlog", ranges, spark.sparkContext.defaultParallelism)
    log = from_log(spark, source, shards, known.contracts, released).persist()
    stage = f"audit:{audit.audit_id}"
    bounds = (None, None) if audit.start is None or audit.end is None else (to_ms(audit.start), to_ms(audit.end))
    try:
        raw = from_raw(spark, places, parquet, ranges, known.contract.window_minutes, released)
        with (
            choose_codegen(spark, sum(lengths.values()) + sum(one.bytes for one in let_go.values())),
            closing(Comparison(log, raw, facts.generation, *bounds)) as compared,
        ):
            windows = compared.windows()
            gone_windows, gone_days = list_expired(connection, known.name)
            for gone_window in gone_windows & windows.keys():  # of what has expired, raw has nothing to compare
                del windows[gone_window]
            if gone_days and None in windows:  # nor of days of quarantine: what is not there may have been in one
                windows[None].apart.pop(Apart.NOT_IN_RAW, None)
            counted = log.where("window_ms IS NOT NULL").transform(aggregate(known.contract))
            known.table.stage(connection, stage, format_copy_lines(counted, known.columns.names))
        gone = audit_store.reaching_back(connection, known.name, facts.generation, facts.earliest)
        _compare_aggregates(connection, known, stage, before, gone, windows, compacted)
    finally:
        log.unpersist()
        if not connection.broken:
            known.table.unstage(connection, stage)
    after = audit_store.read_windows(connection, known.name, audit.start, audit.end)
    for start, one in windows.items():
        if start is not None and start in before and before[start].version != after[start].version:
            one.not_compared, one.counted, one.rows = "it changed during the audit", None, None
    return _result(list(windows.values()), ranges, compacted, sum(w.log.digest.records for w in windows.values()))


def _compare_aggregates(
    connection: Connection,
    known: RegisteredPipeline,
    stage: str,
    before: dict[datetime, audit_store.AuditedWindow],
    gone: frozenset[datetime],
    windows: dict[datetime | None, WindowAudit],
    compacted: bool,
) -> None:
    """Add the third side to each window that it can be held against."""
    whole: list[datetime] = []
    for start, one in windows.items():
        if compacted and Apart.NOT_IN_LOG in one.apart:
            one.apart[Apart.COMPACTED] = one.apart.pop(Apart.NOT_IN_LOG)
            one.not_compared = "Kafka has compacted records of it away"
        elif start is None:
            one.not_compared = "what is in quarantine is not counted"
        elif start in gone:
            one.not_compared = "the log no longer holds all of it"
        elif start in before and before[start].is_open:
            one.not_compared = "it is open"
        else:
            whole.append(start)
    apart = known.table.compare(connection, stage, whole, MOST_ROWS)
    for start in whole:
        windows[start].rows = apart.get(start, (0, []))
        windows[start].counted = before[start].control if start in before else None


def _result(windows: list[WindowAudit], ranges: list[OffsetRange], compacted: bool, delivered: int) -> dict[str, Any]:
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
