"""A certificate recomputed: from raw, in the way a repair does, and from the rows that readers query."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from pyspark.sql import SparkSession

from onceover.audit import store as audit_store
from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline
from onceover.model.claim import ClaimedWindow, RebuiltWindow
from onceover.model.digest import Digest
from onceover.repair.proof import prove
from onceover.repair.rebuild import Rebuild
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.failure import isolate_failures
from onceover.spark.session import choose_codegen

MOST_ROWS = 20
_Raw = tuple[RebuiltWindow, tuple[int, list[str]]]  # and how many rows differ from it, with the first of them


def verify_window(
    spark: SparkSession, context: PipelineContext, known: RegisteredPipeline, audit: audit_store.Audit
) -> dict[str, Any]:
    """Whether raw and the aggregates still say what the window's certificate says; `differences` say where not.

    Raw is judged by the certificate's own landings and offset ranges. Rows that count what was landed since differ from
    it, and that is said: the certificate does not speak for them. Changes nothing.
    """
    connection, files, start = context.ledger, context.files, audit.start
    if start is None:
        raise ValueError(f"audit {audit.audit_id} names no window")
    certified = audit_store.certified(connection, known.name, start)
    compacted, root = certified.claimed.compacted, context.address("hdfs").rstrip("/")
    length = files.read_lengths([start]).get(start, 0)
    path = {start: root + files.layout.window_file(start)} if length else {}
    there = files.find_parquet_files({start: compacted} if compacted else {})
    parquet = {start: root + found for start, found in there.items()}
    stage = f"audit:{audit.audit_id}"

    def together(claimed: Sequence[ClaimedWindow]) -> _Raw | str:
        with (
            choose_codegen(spark, length + (compacted.bytes if compacted else 0)),
            closing(Rebuild(spark, known.contracts, claimed, certified.accounted, path, parquet)) as rebuild,
        ):
            rebuilt = rebuild.collect()[start]
            rows = rebuild.aggregate()
            known.table.stage(
                connection, stage, iter(()) if rows is None else format_copy_lines(rows, known.columns.names)
            )
            return rebuilt, known.table.compare(connection, stage, [start], MOST_ROWS).get(start, (0, []))

    def unread(_: ClaimedWindow, reason: str) -> _Raw | str:
        return reason

    try:
        (raw,) = isolate_failures([certified.claimed], together, unread)
    finally:
        if not connection.broken:
            known.table.unstage(connection, stage)
    return _compared(certified, length, raw)


def _compared(certified: audit_store.Certified, length: int, raw: _Raw | str) -> dict[str, Any]:
    """What differs; `raw` may be why it could not be read."""
    rebuilt, apart = (None, (0, [])) if isinstance(raw, str) else raw
    differences: list[str] = []
    if length < certified.frozen_length:
        differences.append(f"raw: the window file has {length} bytes, the certificate froze {certified.frozen_length}")
    if rebuilt is None:
        differences.append(f"raw: reading it failed: {raw}")
    else:
        reasons = prove(certified.claimed, rebuilt, rebuilt.planned_length).reasons
        differences += [f"raw: {reason}" for reason in reasons]
        if rebuilt.digest != certified.digest and not differences:
            differences.append(f"raw: {rebuilt.digest}, the certificate says {certified.digest}")
    # What readers query is judged whether or not the certificate stands: rows that somebody put back are not it.
    if certified.control != certified.digest:
        counts = "nobody knows what" if certified.control is None else str(certified.control)
        differences.append(f"aggregates: the control row counts {counts}, not {certified.digest}")
    if apart[0]:
        differences.append(f"aggregates: {apart[0]} rows differ from what raw says: {'; '.join(apart[1])}")
    return {
        "equal": not differences,
        "differences": differences,
        "stands": certified.stands,
        "basis": certified.basis,
        "certificate": _side(certified.digest),
        "raw": {
            **_side(rebuilt.digest if rebuilt else None),
            "lines": rebuilt.lines if rebuilt else None,
            "duplicates": rebuilt.duplicates if rebuilt else None,
        },
        "aggregates": {**_side(certified.control), "rows_differing": apart[0]},
    }


def _side(digest: Digest | None) -> dict[str, Any]:
    if digest is None:
        return {"records": None, "digest": None}
    return {"records": digest.records, "digest": str(digest).partition("records ")[2]}
