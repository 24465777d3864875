"""Orphans of expired windows: no repair can rebuild such a window, so their rows are added to those that are there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.findings import resolve_findings
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.digest import sum_digests
from onceover.model.offsets import intersect
from onceover.model.unlanded import Unlanded
from onceover.raw.frozen_file import FrozenText
from onceover.repair import publish
from onceover.repair.folded import FoldedRebuild
from onceover.spark.copy_text import format_copy_lines


def stage_orphans(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    claim: ClaimedWindow,
    found: Unlanded,
    text: FrozenText,
    stage: str,
) -> bool:
    """Stage the rows of a window's orphans; return False if their contract gives some of them no place in the window.

    They are rebuilt as if they were all that has landed in it.
    """
    start = claim.window_start
    landing = ClaimedLanding(landing_id=1, parts=(), exact=found.orphans)
    decisions = tuple(d for d in claim.decisions if intersect(found.orphans, [d.offsets]))
    alone = replace(claim, landings=(landing,), decisions=decisions, certified=None, compacted=None)
    address, texts = context.raw_address, {start: text}
    with closing(FoldedRebuild(spark, address, registered.contracts, [alone], found.orphans, texts)) as rebuild:
        rebuilt = rebuild.collect()
        if start not in rebuilt or rebuilt[start].digest != sum_digests(part.digest for part in found.parts):
            return False
        aggregated = rebuild.aggregate()
        rows = iter(()) if aggregated is None else format_copy_lines(aggregated, registered.columns.names)
        registered.table.stage(context.ledger, stage, rows)
    return True


def end_search(connection: Connection, pipeline: str, claim: ClaimedWindow, length: int | None) -> None:
    """Record that the file of an open or expired window was searched, and holds no orphan; `length` is that of the
    file, or None if some of its lines wait for Kafka."""
    searched = "its file holds no record that only raw has"
    if not claim.is_expired:
        publish.reopen(connection, claim, f"open: {searched}; it is judged later", length)
        return
    resolve_findings(connection, pipeline, claim.window_start, f"expired: {searched} and that does not count")
    publish.reopen(connection, claim, f"expired: {searched} and that does not count; its rows stay", length)
