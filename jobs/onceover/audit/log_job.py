"""The audit of a log: all that Kafka's log and raw hold, compared with each other and with the aggregates."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import SparkSession

from onceover.audit import store as audit_store
from onceover.audit.comparison import Bounds, aggregate_held, count_windows, find_first_offsets, judge
from onceover.audit.log_and_raw import hold, read_log, read_raw
from onceover.audit.log_plan import LogPlan, is_cut_short, is_log_whole, list_before_origin, plan_log, read_facts
from onceover.audit.result import WindowAudit
from onceover.audit.rows import compare_rows
from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline
from onceover.model.batch_plan import cut_into_shards
from onceover.model.json_text import to_plain
from onceover.model.raw_file import RawFile
from onceover.model.window import to_ms
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.raw_lines import QUARANTINE, LineFile
from onceover.spark.session import choose_codegen

log = logging.getLogger(__name__)
MAX_WINDOWS = 5_000  # in a result; of more windows, only those that differ
_Windows = dict[datetime | None, WindowAudit]


@dataclass(frozen=True, slots=True)
class _Found:
    """What an audit found in Kafka and raw: the windows that hold records, and the log that was read."""

    windows: _Windows
    plan: LogPlan
    is_whole: bool


def audit_log(
    spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline, audit: audit_store.Audit
) -> dict[str, Any]:
    """Compare all records that Kafka's log and raw hold of the audit's windows, each ID once, with the aggregates;
    without a range, of all windows and quarantine. Changes nothing.

    The ledger is not asked which records exist: one that it does not know is a difference. Records that ingest is still
    to read are none. An expired window is compared only if the log begins where reading began.
    """
    stage = f"audit:{audit.audit_id}"
    statement = audit_store.read_statement(context.ledger, registered.name, audit.start, audit.end)
    try:
        found = _compare_held(spark, context, registered, audit, statement, stage)
        log.info("comparing %d windows with their rows", len(found.windows))
        not_compared = compare_rows(
            context, registered, audit, statement, found.windows, stage, is_log_whole=found.is_whole
        )
    finally:
        if not context.ledger.broken:
            registered.table.unstage(context.ledger, stage)
    after = audit_store.read_windows(context.ledger, registered.name, audit.start, audit.end)
    for start, window in found.windows.items():
        if start in after and (
            start not in statement.windows or statement.windows[start].version != after[start].version
        ):
            window.not_compared, window.counted, window.rows = "it changed during the audit", None, None
    return _build_result(found, not_compared)


def _compare_held(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    audit: audit_store.Audit,
    statement: audit_store.LedgerStatement,
    stage: str,
) -> _Found:
    """Compare Kafka's log with raw, and stage the aggregates of what they hold."""
    files = _find_raw(context, statement, audit)
    # Raw is listed after the ledger was read, and before the log: the log holds what was appended in between.
    schemas = replace(context.schemas, may_miss=True)
    raw = read_raw(spark, context.raw_address, files, registered.contracts, statement.releases, schemas)
    marker = context.markers.read_newest_readable().marker
    marked = marker.origins if marker else {}
    low, high = (None, None) if audit.start is None or audit.end is None else (to_ms(audit.start), to_ms(audit.end))
    with context.open_topic() as topic:
        facts = read_facts(topic)
        is_compacted = bool(facts.end) and topic.policy().compacted
        first = find_first_offsets(raw) if raw is not None and is_cut_short(facts, marked) else {}
        plan = plan_log(facts, statement, {source: min(at, first.get(source, at)) for source, at in marked.items()})
        sides = [] if raw is None else [raw]
        if plan.to_audit:
            shards = cut_into_shards("backlog", plan.to_audit, spark.sparkContext.defaultParallelism)
            args = (facts.generation, shards, registered.contracts, statement.releases, schemas)
            sides.append(read_log(spark, context.build_source(facts), *args))
        found = _Found({}, plan, is_log_whole(facts, statement, marked) and not is_compacted)
        if not sides:
            return found
        offsets, size = sum(map(len, plan.to_audit)), sum(file.length for file in files)
        log.info("reading %d offsets of Kafka's log and %d files of raw, %.1f MiB", offsets, len(files), size / 2**20)
        held = hold(sides, low, high).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with choose_codegen(spark, size):
                first = first or find_first_offsets(held.where("lines > 0"))
                bounds = Bounds(
                    in_log=plan.list_still_held(topic.facts()) if plan.to_audit else (),
                    to_read=plan.to_read,
                    before_origin=list_before_origin(statement, marked, first),
                    accounted=statement.accounted,
                    lost=statement.lost,
                )
                judged = judge(held, bounds, is_compacted=is_compacted)
                found.windows.update(count_windows(judged))
                counted = aggregate_held(judged, registered.contract)
                registered.table.stage(context.ledger, stage, format_copy_lines(counted, registered.columns.staged))
        finally:
            held.unpersist()
    return found


def _find_raw(
    context: PipelineContext, statement: audit_store.LedgerStatement, audit: audit_store.Audit
) -> list[LineFile]:
    """Return the files of raw, those without a window in the ledger included. A compacted file counts if it is the one
    that the ledger recorded, or if its window has no other file."""
    layout = context.layout
    files = [
        (file.window_start, file)
        for file in context.files.list_window_files(audit.start, audit.end)
        if file.window_start is not None
    ]
    text = {start: file for start, file in files if not file.is_compacted}

    def is_read(start: datetime, file: RawFile) -> bool:
        recorded = statement.windows[start].compacted if start in statement.windows else None
        if recorded is None:
            return start not in text
        return (file.path, file.length) == (layout.compacted_file(start, recorded.digest), recorded.bytes)

    compacted = [(start, file) for start, file in files if file.is_compacted and is_read(start, file)]
    windows = [LineFile(to_ms(start), file.path, file.length) for start, file in [*text.items(), *compacted]]
    days = context.files.list_quarantine_days().items()
    return [*windows, *(LineFile(QUARANTINE, layout.quarantine_file(day), length) for day, length in days)]


def _build_result(found: _Found, expired: int) -> dict[str, Any]:
    in_order = sorted(start for start in found.windows if start is not None)
    windows = [found.windows[start] for start in (None, *in_order) if start in found.windows]
    differing = [w for w in windows if not w.is_equal]
    return {
        "equal": not differing,
        "windows": len(windows),
        "differing": len(differing),
        "offsets": sum(map(len, found.plan.to_audit)),
        "records": sum(w.held.kafka for w in windows),
        "held_by_both": sum(w.held.both for w in windows),
        "only_in_raw": sum(w.held.only_in_raw for w in windows),
        "only_in_kafka": sum(w.held.only_in_kafka for w in windows),
        "unaccounted": sum(w.held.unaccounted for w in windows),
        "not_read_yet": sum(map(len, found.plan.to_read)),
        "expired": expired,
        "rows": to_plain(windows if len(windows) <= MAX_WINDOWS else differing[:MAX_WINDOWS]),
    }
