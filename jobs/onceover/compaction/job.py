"""Compaction of windows: the lines of certified records, once each, compressed by zstd beside the text.

Every file is written under another name and read back; only if its digest is the certificate's is it moved to its place
and recorded, in one transaction. The text stays unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.errors import TerminalError
from onceover.fault_points import CompactStep, FaultPoint
from onceover.ledger import compactions
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.certificates import StoredCertificate, read_certificate
from onceover.ledger.compactions import CompactionDue
from onceover.model.digest import Digest
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.window import format_moment, to_ms
from onceover.model.wording import pluralize
from onceover.repair.folded import list_texts, open_rebuild
from onceover.repair.groups import group_windows
from onceover.repair.progress import WindowProgress
from onceover.repair.proof import prove
from onceover.spark import compacted_files
from onceover.spark.failure import isolate_failures
from onceover.spark.raw_lines import LineFile

log = logging.getLogger(__name__)
BYTES_AT_ONCE = 512 << 20
"""Text that is compacted together. A killed run has recorded the windows of earlier groups."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result for one window: the bytes of its compacted file, or why it has none. `found`: the file was there, and
    replaces text that is gone."""

    due: CompactionDue
    bytes: int | None = None
    why: str | None = None
    found: bool = False

    def as_dict(self) -> dict[str, object]:
        return {
            "window": self.due.window_start,
            "records": self.due.digest.records,
            "text_bytes": self.due.text_bytes,
            "bytes": self.bytes,
            "why": self.why,
            "found": self.found,
        }


@dataclass(frozen=True, slots=True)
class CompactRun:
    """A run on one Spark session, by the only process that compacts this pipeline."""

    spark: SparkSession
    context: PipelineContext
    registered: RegisteredPipeline
    fault_point: FaultPoint

    def run(self, due: Sequence[CompactionDue]) -> list[CompactionResult]:
        """Compact these windows; one that fails does not stop the others."""
        self.context.require_own_root()
        self.context.files.clear_compacting()  # of a run that was killed
        results: list[CompactionResult] = []
        progress = WindowProgress(len(due), sum(each.digest.records for each in due))
        for group in group_windows(due, lambda each: each.text_bytes, BYTES_AT_ONCE):
            size = sum(each.text_bytes for each in group)
            log.info("reading %d window files, %.1f MiB", len(group), size / 2**20)
            results += chain.from_iterable(
                isolate_failures(group, lambda some: list(self._compact(some)), _report_failure)
            )
            progress.add_bytes(size)
            progress.finish(len(group), sum(each.digest.records for each in group))
        self.context.files.clear_compacting()
        for result in results:
            if result.why:
                log.error("window %s: %s", format_moment(result.due.window_start), result.why)
        return results

    def _compact(self, group: Sequence[CompactionDue]) -> Iterator[CompactionResult]:
        certified: dict[datetime, StoredCertificate] = {}
        for due in group:
            try:
                certified[due.window_start] = read_certificate(
                    self.context.ledger, self.registered.name, due.window_start
                )
            except TerminalError as error:  # the window or its certificate expired since it was listed
                yield CompactionResult(due, why=str(error))
        lengths = self.context.files.read_lengths(certified)
        texts, claimed = list_texts(self.context.files, lengths), [each.claimed for each in certified.values()]
        own = [each.offsets for of_window in certified.values() for each in of_window.extras]
        with open_rebuild(
            self.spark, self.context, self.registered.contracts, claimed, texts, {}, own=own
        ) as (rebuild, rebuilt):  # fmt: skip
            right: list[CompactionDue] = []
            for due in (due for due in group if due.window_start in certified):
                why = rebuild.failures.get(due.window_start) or _find_difference(
                    due, certified[due.window_start], rebuilt[due.window_start]
                )
                if why is None:
                    right.append(due)
                else:
                    yield CompactionResult(due, why=why)
            if not right:
                return
            lines = rebuild.select_lines([due.window_start for due in right])
            files = compacted_files.write(lines, self.context.raw_address, self.context.files.layout.compacting)
            self.fault_point.stop_after(CompactStep.WRITTEN)
            held = compacted_files.digest_files(self.spark, self.context.raw_address, files)
        written = {file.window_ms: file for file in files}
        for due in right:
            window_ms = to_ms(due.window_start)
            if (digest := held.get(window_ms, Digest())) != due.digest:
                yield CompactionResult(
                    due, why=f"the written file reads back as {digest}, not as {due.digest}; compact the window again"
                )
            else:
                yield self._keep(due, written[window_ms].path, written[window_ms].length)

    def _keep(self, due: CompactionDue, source: str, length: int) -> CompactionResult:
        def place() -> None:
            self.context.files.place(source, due.window_start, due.digest)
            self.fault_point.stop_after(CompactStep.PLACED)

        if compactions.record_compaction(self.context.ledger, self.registered.name, due, length, place):
            return CompactionResult(due, length)
        return CompactionResult(due, why="it changed meanwhile, or a repair holds it; compact the window again")


def take_over_found(
    spark: SparkSession, context: PipelineContext, found: Sequence[CompactionDue]
) -> list[CompactionResult]:
    """Read these files back, and record those whose digest is the certificate's; one that differs stops no other."""
    context.require_own_root()
    lengths = context.files.read_compacted_lengths({each.window_start: each.digest for each in found})

    def read(some: Sequence[CompactionDue]) -> list[CompactionResult]:
        files = [
            LineFile(to_ms(start), context.layout.compacted_file(start, each.digest), lengths[start])
            for each in some
            for start in [each.window_start]
        ]
        held = compacted_files.digest_files(spark, context.raw_address, files)
        results = []
        for each in some:
            digest = held.get(to_ms(each.window_start))
            if digest != each.digest:
                reason = f"the file beside it reads back as {digest}, its certificate says {each.digest}"
                results.append(CompactionResult(each, why=reason))
                continue
            length = lengths[each.window_start]
            if compactions.take_over(context.ledger, context.name, each, length):
                results.append(CompactionResult(each, length, found=True))
            else:
                reason = "it changed meanwhile, or a repair holds it; compact the window again"
                results.append(CompactionResult(each, why=reason))
        return results

    def report(each: CompactionDue, reason: str) -> list[CompactionResult]:
        return [CompactionResult(each, why=f"the file beside it cannot be read: {reason}")]

    present = [each for each in found if each.window_start in lengths]
    return list(chain.from_iterable(isolate_failures(present, read, report))) if present else []


def _report_failure(due: CompactionDue, reason: str) -> list[CompactionResult]:
    return [CompactionResult(due, why=f"Spark failed: {reason}")]


def _find_difference(due: CompactionDue, certified: StoredCertificate, rebuilt: RebuiltWindow) -> str | None:
    """Return why the window's text differs from its certificate, None if it does not."""
    reasons = prove(certified.claimed, rebuilt).reasons
    if reasons:
        more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        return f"raw differs from its certificate: {reasons[0]}{more}"
    if rebuilt.repeated:
        return f"{pluralize(rebuilt.repeated, 'record')} landed under two leader epochs, and a compacted file has one"
    if rebuilt.digest != due.digest:
        return f"raw holds {rebuilt.digest}, its certificate says {due.digest}"
    return None
