"""Which windows hold what landed in them: only then a comparison with other windows has seen all contents."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.ledger import compactions, decisions, rereads
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.expiries import list_quarantine_lengths
from onceover.model.claim import ClaimedWindow
from onceover.model.conflict import NO_CONTENT
from onceover.model.offsets import OffsetRange
from onceover.model.window import format_moment
from onceover.raw.frozen_file import FrozenText
from onceover.repair.folded import FoldedRebuild
from onceover.repair.freeze import list_compacted, list_texts
from onceover.repair.groups import RECORDS_A_CORE, count_records, group_windows
from onceover.repair.proof import list_unproved_parts
from onceover.spark.failure import isolate_failures

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SidePaths:
    """The existing files of some windows and days of quarantine, as they were listed once."""

    text: Mapping[datetime, FrozenText]
    compacted: Mapping[datetime, FrozenText]
    quarantine: Mapping[date, FrozenText]
    short_days: frozenset[date]  # whose files are missing, or shorter than what landed

    def leave_out(self, windows: Iterable[datetime]) -> SidePaths:
        """Return the paths without those of these windows."""
        out = frozenset(windows)
        text = {start: file for start, file in self.text.items() if start not in out}
        return replace(self, text=text, compacted={s: file for s, file in self.compacted.items() if s not in out})


def list_paths(context: PipelineContext, windows: Sequence[datetime], days: Iterable[date]) -> SidePaths:
    """List the existing files of these windows and days."""
    files = context.files
    wanted = frozenset(days)
    expected = list_quarantine_lengths(context.ledger, context.name) if wanted else {}
    lengths = files.list_quarantine_days() if wanted else {}
    substitutes = compactions.list_substitutes(context.ledger, context.name, windows)
    compacted = {start: file for start, file in substitutes.items() if file is not None}
    return SidePaths(
        list_texts(files, files.read_lengths(windows)),
        list_compacted(files, compacted),
        {day: FrozenText(files.layout.quarantine_file(day), n) for day, n in lengths.items() if day in wanted},
        frozenset(day for day in wanted if lengths.get(day, 0) < expected.get(day, 0)),
    )


def find_unheld(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    windows: Sequence[datetime],
    paths: SidePaths,
) -> tuple[Mapping[datetime, tuple[OffsetRange, ...]], frozenset[datetime]]:
    """Return by window the offsets of landings whose records its files do not hold, and the windows whose files cannot
    be read. Expired windows hold nothing any more, and miss nothing."""
    sides = [
        side
        for start in windows
        if (side := rereads.read_unclaimed(context.ledger, registered.name, start)) is not None
    ]
    # A landing holds one of an ID's contents, whichever a person keeps.
    kept = {decision.offsets: decision.kept for side in sides for decision in side.decisions}
    contested = decisions.list_own_contents(context.ledger, registered.name, windows)
    for n, side in enumerate(sides):
        own = {each.offsets for each in side.decisions}
        more = (each for each in contested.get(side.window_start, ()) if each.offsets not in own)
        sides[n] = replace(
            side, decisions=(*side.decisions, *(each.keep(kept.get(each.offsets, NO_CONTENT)) for each in more))
        )
    unheld: dict[datetime, tuple[OffsetRange, ...]] = {}
    unreadable: set[datetime] = set()

    def note_unreadable(side: ClaimedWindow, reason: str) -> None:
        log.error("window %s: reading raw failed: %s", format_moment(side.window_start), reason)
        unheld[side.window_start] = tuple(offsets for landing in side.landings for offsets, _ in landing.parts)
        unreadable.add(side.window_start)

    def compare(some: Sequence[ClaimedWindow]) -> None:
        with closing(
            FoldedRebuild(
                spark,
                context.raw_address,
                registered.contracts,
                some,
                (),
                (),
                paths.text,
                compacted=paths.compacted,
            )
        ) as rebuild:
            rebuilt = rebuild.collect()
        for side in some:
            if reason := rebuild.failures.get(side.window_start):
                note_unreadable(side, reason)
            else:
                parts = list_unproved_parts(side, rebuilt[side.window_start])
                unheld[side.window_start] = tuple(part.offsets for part in parts)

    for group in group_windows(sides, count_records, RECORDS_A_CORE * spark.sparkContext.defaultParallelism):
        for _ in isolate_failures(group, compare, note_unreadable):
            pass
    return unheld, frozenset(unreadable)
