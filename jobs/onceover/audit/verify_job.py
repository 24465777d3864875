"""The audit of a window: its certificate recomputed from raw, as a repair does, and from the rows readers query."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from onceover.audit import store as audit_store
from onceover.audit.log_and_raw import read_raw
from onceover.audit.log_plan import plan_log, read_facts
from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.certificates import StoredCertificate, read_certificate
from onceover.model.claim import ClaimedWindow
from onceover.model.digest import Digest
from onceover.model.offsets import coalesce
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import ID_COLUMNS
from onceover.model.window import format_moment, to_ms
from onceover.repair.folded import list_compacted, list_texts, open_rebuild
from onceover.repair.proof import prove
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.failure import isolate_failures
from onceover.spark.range_join import looked_up
from onceover.spark.raw_lines import LineFile

log = logging.getLogger(__name__)
MAX_ROWS = 20
_Raw = tuple[RebuiltWindow, tuple[int, list[str]]]  # with the number of rows that differ, and the first of them


def verify_window(
    spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline, audit: audit_store.Audit
) -> dict[str, Any]:
    """Compare raw and the aggregates with the window's certificate; `differences` of the result list what differs.

    Judges raw by the certificate's own landings and offset ranges. Rows that count later landings differ too, and are
    listed: the certificate does not cover them. So do records that have landed nowhere, unless ingest is still to read
    them; Kafka is asked only if there are such lines. Changes nothing.
    """
    connection, files, start = context.ledger, context.files, audit.start
    if start is None:
        raise ValueError(f"audit {audit.audit_id} names no window")
    context.require_known_format()
    context.require_schemas()
    certified = read_certificate(connection, registered.name, start)
    compacted = certified.claimed.compacted
    length = files.read_lengths([start]).get(start, 0)
    texts = list_texts(files, {start: length})
    replacing = list_compacted(files, [certified.claimed])
    stage = f"audit:{audit.audit_id}"

    size = length + (compacted.bytes if compacted else 0)
    log.info("reading window %s, %.1f MiB", format_moment(start), size / 2**20)

    def rebuild_claimed(claimed: Sequence[ClaimedWindow]) -> _Raw | str:
        own = [each.offsets for each in certified.extras]
        with open_rebuild(spark, context, registered.contracts, claimed, texts, replacing, own=own) as (
            rebuild,
            windows,
        ):
            rebuilt = windows.get(start)
            if rebuilt is None:
                return rebuild.failures[start]
            rows = format_copy_lines(rebuild.aggregate(), registered.columns.staged)
            registered.table.stage(connection, stage, rows)
            return rebuilt, registered.table.compare(connection, stage, [start], MAX_ROWS).get(start, (0, []))

    try:
        (raw,) = isolate_failures(
            [replace(certified.claimed, by_value=True)], rebuild_claimed, lambda _, reason: reason
        )
    finally:
        if not connection.broken:
            registered.table.unstage(connection, stage)
    has_unknown_lines = not isinstance(raw, str) and raw[0].foreign_lines > 0
    read = [LineFile(to_ms(at), file.path, file.length) for files in (texts, replacing) for at, file in files.items()]
    unaccounted = _count_unaccounted(spark, context, registered, audit, read) if has_unknown_lines else 0
    return _build_result(certified, length, raw, unaccounted)


def _count_unaccounted(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    audit: audit_store.Audit,
    files: Sequence[LineFile],
) -> int:
    """Count the IDs in the files that no landing accounts for by now, and that ingest is not going to read."""
    statement = audit_store.read_statement(context.ledger, registered.name, audit.start, audit.end)
    lines = read_raw(
        spark,
        context.raw_address,
        files,
        registered.contracts,
        statement.releases,
        replace(context.schemas, may_miss=True),
    )
    if lines is None:
        return 0
    with context.open_topic() as topic:
        facts = read_facts(topic)  # after the files were listed: the log holds what was appended meanwhile
    known = [*statement.accounted, *plan_log(facts, statement, {}).to_read]
    is_known = looked_up(((offsets, 1) for offsets in coalesce(known)), "is_known")
    return lines.transform(is_known).where("is_known IS NULL").select(*ID_COLUMNS).distinct().count()


def _build_result(certified: StoredCertificate, length: int, raw: _Raw | str, unaccounted: int) -> dict[str, Any]:
    """Return the result; `raw` is the rebuilt window, or why reading it failed, `unaccounted` the number of records in
    raw that no landing accounts for."""
    rebuilt, rows = (None, (0, [])) if isinstance(raw, str) else raw
    differences: list[str] = []
    if length < certified.frozen_length:
        differences.append(f"raw: the window file has {length} bytes, the certificate froze {certified.frozen_length}")
    if rebuilt is None:
        differences.append(f"raw: reading it failed: {raw}")
    else:
        reasons = prove(certified.claimed, rebuilt).reasons
        differences += [f"raw: {reason}" for reason in reasons]
        if rebuilt.digest != certified.digest and not differences:
            differences.append(f"raw: {rebuilt.digest}, the certificate says {certified.digest}")
    if unaccounted:
        differences.append(f"raw: {unaccounted} records that no landing accounts for")
    # The aggregates are judged even if the certificate is no longer valid: rows may have been put back by hand.
    if certified.control != certified.digest:
        counts = "an unknown number" if certified.control is None else str(certified.control)
        differences.append(f"aggregates: the control row counts {counts}, not {certified.digest}")
    if rows[0]:
        differences.append(f"aggregates: {rows[0]} rows differ (- the table's, + raw's): {'; '.join(rows[1])}")
    return {
        "equal": not differences,
        "differences": differences,
        "valid": certified.is_valid,
        "basis": certified.basis,
        "certificate": _describe_side(certified.digest),
        "raw": {
            **_describe_side(rebuilt.digest if rebuilt else None),
            "lines": rebuilt.lines if rebuilt else None,
            "duplicates": rebuilt.duplicates if rebuilt else None,
            "unaccounted": unaccounted if rebuilt else None,
        },
        "aggregates": {**_describe_side(certified.control), "rows_differing": rows[0]},
    }


def _describe_side(digest: Digest | None) -> dict[str, Any]:
    if digest is None:
        return {"records": None, "digest": None}
    return {"records": digest.records, "digest": str(digest).partition("records ")[2]}
