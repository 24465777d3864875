"""The preview of a restatement: the rows that the contract in force gives of a range's windows, beside those of now."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from onceover.audit import store as audit_store
from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.claims import read_unclaimed
from onceover.ledger.database import in_snapshot
from onceover.ledger.landed_offsets import read_accounted
from onceover.ledger.landings import count_landed_lines
from onceover.ledger.row_changes import list_staged_changes
from onceover.ledger.windows import list_windows
from onceover.model.claim import ClaimedWindow
from onceover.model.offsets import OffsetRange
from onceover.model.record import ID_COLUMNS
from onceover.model.restatement import Restatement
from onceover.model.window import WindowRange, format_moment, from_ms, to_ms
from onceover.model.wording import pluralize
from onceover.raw.frozen_file import FrozenText
from onceover.repair.folded import list_compacted, list_texts, open_rebuild
from onceover.repair.job import read_own_offsets
from onceover.repair.progress import WindowProgress
from onceover.repair.proof import prove
from onceover.repair.restate import require_restatable
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.failure import isolate_failures
from onceover.spark.interpret import interpret
from onceover.spark.raw_lines import LineFile, read_raw_lines

log = logging.getLogger(__name__)
GROUP: Final = 500
"""Windows that are read by one query."""
MAX_ROWS, MAX_SHOWN, MAX_EXAMPLES = 20, 100, 3
_RECORD = ("intact", "event_ms", *ID_COLUMNS, "kafka_timestamp", "key", "headers", "value")
_Entry = dict[str, Any]


def preview_restatement(
    spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline, audit: audit_store.Audit
) -> dict[str, Any]:
    """Evaluate the records of the audit's range under the contract in force, and compare the rows that they give with
    those of now. Publishes nothing.

    Windows whose records that contract dates otherwise, or quarantines, are `refused`, with examples; so are those that
    raw does not prove. Without any, the result has the `token` by which the restatement is made.
    """
    if audit.start is None or audit.end is None:
        raise ValueError(f"audit {audit.audit_id} names no range")
    window_range = WindowRange(audit.start, audit.end)
    token = require_restatable(context, registered, window_range)
    context.require_schemas()
    planned = Restatement(
        len(registered.restatements) + 1, audit.start, audit.end, registered.contract_version, "", "", datetime.now(UTC)
    )
    windows = list_windows(context.ledger, registered.name, None, audit.start, audit.end)
    starts = [row["window_start"] for row in windows]
    lines = count_landed_lines(context.ledger, registered.name, starts)
    log.info("evaluating %d windows", len(starts))
    progress = WindowProgress(len(starts), sum(lines.values()))
    under_it = replace(registered, restatements=(*registered.restatements, planned))
    preview = _Preview(spark, context, under_it, audit, progress)
    entries: list[_Entry] = []
    for first in range(0, len(starts), GROUP):
        group = starts[first : first + GROUP]
        entries += preview.compare(group)
        progress.finish(len(group), sum(lines.get(start, 0) for start in group))
    refused = [each for each in entries if each["refused"]]
    changing = [each for each in entries if each["rows_differing"]]
    return {
        "equal": not refused,
        "contract_version": registered.contract_version,
        "windows": len(entries),
        "changing": len(changing),
        "refused": refused[:MAX_SHOWN],
        "refused_windows": len(refused),
        "rows": changing[:MAX_SHOWN],
        "token": None if refused else token,
    }


class _Preview:
    def __init__(
        self,
        spark: SparkSession,
        context: PipelineContext,
        planned: RegisteredPipeline,
        audit: audit_store.Audit,
        progress: WindowProgress,
    ) -> None:
        self._spark, self._context, self._planned, self._progress = spark, context, planned, progress
        self._stage = f"audit:{audit.audit_id}"

    def compare(self, starts: Sequence[datetime]) -> list[_Entry]:
        """Return an entry for each of these windows, in order."""
        ledger, files = self._context.ledger, self._context.files
        with in_snapshot(ledger):
            claimed = read_unclaimed(ledger, self._planned.name, starts)
            accounted = tuple(read_accounted(ledger, self._planned.name))
        # Raw is listed after the ledger was read: it has all that had landed.
        texts, compacted = list_texts(files, files.read_lengths(starts)), list_compacted(files, claimed)
        own = read_own_offsets(self._context)

        def evaluate(some: Sequence[ClaimedWindow]) -> list[_Entry]:
            return self._evaluate(some, texts, compacted, accounted, own)

        def fail(claim: ClaimedWindow, reason: str) -> list[_Entry]:
            return [_describe(claim.window_start, refused=f"reading raw failed: {reason}")]

        try:
            return [entry for part in isolate_failures(claimed, evaluate, fail) for entry in part]
        finally:
            if not ledger.broken:
                self._planned.table.unstage(ledger, self._stage)

    def _evaluate(
        self,
        claimed: Sequence[ClaimedWindow],
        texts: Mapping[datetime, FrozenText],
        compacted: Mapping[datetime, FrozenText],
        accounted: Sequence[OffsetRange],
        own: Sequence[OffsetRange],
    ) -> list[_Entry]:
        ledger, table, starts = self._context.ledger, self._planned.table, [each.window_start for each in claimed]
        chosen = {start: texts[start] for start in starts if start in texts}
        replacing = {start: compacted[start] for start in starts if start in compacted}
        self._progress.add_bytes(sum(file.length for file in (*chosen.values(), *replacing.values())))
        with open_rebuild(
            self._spark, self._context, self._planned.contracts, claimed, chosen, replacing, accounted=accounted,
            own=own,
        ) as (rebuild, windows):  # fmt: skip
            table.stage(ledger, self._stage, format_copy_lines(rebuild.aggregate(), self._planned.columns.staged))
        differing = {start: number for start, (number, _) in table.compare(ledger, self._stage, starts, 1).items()}
        entries = []
        for claim in claimed:
            start, rebuilt = claim.window_start, windows.get(claim.window_start)
            if rebuilt is None:
                entries.append(_describe(start, refused=f"reading raw failed: {rebuild.failures[start]}"))
                continue
            files = [each[start] for each in (chosen, replacing) if start in each]
            examples = self._list_examples(start, files) if rebuilt.misplaced_lines else []
            if examples:  # also where they are extras, which no landing misses
                moved = f"{pluralize(rebuilt.misplaced_lines, 'line')} dated otherwise or quarantined"
                entries.append(_describe(start, refused=moved, examples=examples))
            elif (verdict := prove(claim, rebuilt)).is_proved:
                rows = list_staged_changes(ledger, table, self._stage, start, MAX_ROWS) if start in differing else []
                entries.append(_describe(start, differing.get(start, 0), rows))
            else:
                entries.append(_describe(start, refused="; ".join(verdict.reasons[:3])))
        return entries

    def _list_examples(self, start: datetime, files: Sequence[FrozenText]) -> list[str]:
        """Return IDs of records that the contract in force dates otherwise or quarantines, each with the reason."""
        listed = [LineFile(to_ms(start), file.path, file.length) for file in files]
        lines = read_raw_lines(self._spark, self._context.raw_address, listed, *_RECORD).where("intact")
        given = lines.withColumnRenamed("event_ms", "line_ms")
        moved = given.transform(interpret(self._planned.contract, self._planned.list_poison(), self._context.schemas))
        found = moved.where("event_ms IS NULL OR event_ms <> line_ms").select(
            F.format_string("%s-%d:%d: ", "generation", "kafka_partition", "offset").alias("at"), "reason", "event_ms"
        )
        return [
            row["at"] + (row["reason"] or f"event time {from_ms(row['event_ms']).isoformat(timespec='milliseconds')}")
            for row in found.limit(MAX_EXAMPLES).collect()
        ]


def _describe(
    start: datetime,
    differing: int = 0,
    rows: Sequence[Mapping[str, Any]] = (),
    refused: str = "",
    examples: Sequence[str] = (),
) -> _Entry:
    return {"window": format_moment(start), "rows_differing": differing, "rows": rows, "refused": refused or None,
            "examples": list(examples)}  # fmt: skip
