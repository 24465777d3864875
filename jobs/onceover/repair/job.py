"""The repair job: freeze, rebuild, stage, prove and publish a request's windows, each failing alone."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from operator import add

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.errors import FencedError
from onceover.fault_points import FaultPoint, RepairStep
from onceover.ledger import repair_requests, repair_tries
from onceover.ledger.batches import list_in_flight
from onceover.ledger.catalog import RegisteredPipeline, require_in_force
from onceover.ledger.database import DatabaseError
from onceover.ledger.frontiers import read_origins
from onceover.model.claim import ClaimedWindow
from onceover.model.offsets import LARGEST_END, OffsetRange
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.repair_failure import RepairFailure
from onceover.model.root_marker import join_origins
from onceover.model.window import format_moment
from onceover.repair import publish
from onceover.repair.folded import list_compacted, list_texts, open_rebuild
from onceover.repair.progress import WindowProgress
from onceover.repair.proof import Verdict, add_failed_proof, leave_out_strays, prove
from onceover.repair.restate import explain_refused
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.failure import isolate_failures
from onceover.spark.hdfs_leases import SOFT_LIMIT_SECONDS, Leases, open_leases

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """Counts of windows by outcome; `blocked` ones also count as failed."""

    published: int = 0
    changed: int = 0
    failed: int = 0
    blocked: int = 0

    def __add__(self, other: RepairOutcome) -> RepairOutcome:
        return RepairOutcome(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class RepairRun:
    """The repair of one request, on one Spark session."""

    spark: SparkSession
    context: PipelineContext
    registered: RegisteredPipeline
    request: repair_requests.RepairRequest
    fault_point: FaultPoint
    progress: WindowProgress

    def run(self, claimed: Sequence[ClaimedWindow], accounted: Sequence[OffsetRange]) -> RepairOutcome:
        """Repair the claimed windows of one group by one query; if that query fails, in halves, until the bad window is
        alone. May be called for one group after the other.

        Raises ContractChangedError if the pipeline was migrated before the claim: the windows may then hold records of
        the new contract, which this process cannot read. A later migration does not affect them.
        """
        if not claimed:
            return RepairOutcome()
        require_in_force(self.context.ledger, self.registered)
        self.context.require_own_root()
        restated = self.registered.contracts.find_restated_version
        if any(claim.by_value or restated(claim.window_start) > 1 for claim in claimed):
            self.context.require_schemas()  # here: no window is to blame
        leases = open_leases(self.spark, self.context)  # here: what it raises is no window's failure
        outcomes = isolate_failures(
            claimed, lambda some: self._repair_windows(some, accounted, leases), self._record_unreadable
        )
        return sum(outcomes, RepairOutcome())

    def _repair_windows(
        self, claimed: Sequence[ClaimedWindow], accounted: Sequence[OffsetRange], leases: Leases
    ) -> RepairOutcome:
        frozen = freeze(self.context, leases, [claim.window_start for claim in claimed])
        texts, compacted = list_texts(self.context.files, frozen), list_compacted(self.context.files, claimed)
        size = sum(file.length for files in (texts, compacted) for file in files.values())
        log.info("reading %d window files, %d compacted ones, %.1f MiB", len(texts), len(compacted), size / 2**20)
        self.progress.add_bytes(size)
        registered, stage = self.registered, self.request.stage
        table = registered.table
        try:
            with open_rebuild(
                self.spark, self.context, registered.contracts, claimed, texts, compacted, accounted=accounted,
                own=read_own_offsets(self.context),
            ) as (rebuild, rebuilt):  # fmt: skip
                rows = format_copy_lines(rebuild.aggregate(), registered.columns.staged)
                staged = table.stage(self.context.ledger, stage, rows)
            self.fault_point.stop_after(RepairStep.STAGED)
            log.info("read %d lines, staged %d rows", sum(r.lines for r in rebuilt.values()), staged)
            outcome, failures = RepairOutcome(), rebuild.failures
            for claim in (claim for claim in claimed if claim.window_start in failures):
                outcome += self._record_unreadable(claim, failures[claim.window_start])
            for claim in (claim for claim in claimed if claim.window_start not in failures):
                outcome += self._judge(claim, rebuilt[claim.window_start])
        finally:
            if not self.context.ledger.broken:
                table.unstage(self.context.ledger, stage)
        return outcome

    def _judge(self, claim: ClaimedWindow, rebuilt: RebuiltWindow) -> RepairOutcome:
        verdict = prove(claim, rebuilt)
        restated = self.registered.contracts.find_restated_version(claim.window_start)
        if restated > 1 and rebuilt.misplaced_lines and not verdict.is_proved:
            # Which of the two it is, this does not show; lines that only the contract moves must not be taken out.
            reasons = (explain_refused(self.registered.name, rebuilt.misplaced_lines, restated), *verdict.reasons[:2])
            failures = {RepairFailure.OTHERWISE_DATED, *verdict.failures}
            return self._record_failure(claim, "; or ".join(reasons), failures, rebuilt, leave_out_strays(verdict))
        if rebuilt.unknown:
            reason = explain_unknown(self.context, rebuilt.unknown)
            return self._record_failure(claim, reason, {RepairFailure.UNKNOWN_CONTRACT}, rebuilt, verdict)
        if not verdict.is_proved:
            more = len(verdict.reasons) - 3
            reason = "; ".join(verdict.reasons[:3]) + (f"; and {more} more" if more > 0 else "")
            return self._record_failure(claim, reason, verdict.failures, rebuilt, verdict)
        try:
            published = publish.publish(
                self.context.ledger, self.registered, self.request, claim, rebuilt, verdict.findings
            )
        except FencedError as error:
            log.warning("%s", error)
            repair_tries.finish_try(self.context.ledger, claim, "unneeded", str(error))
            return RepairOutcome(changed=1)
        except publish.CountedTwiceError as error:
            return self._record_failure(claim, str(error), {RepairFailure.TWO_WINDOWS}, rebuilt, verdict)
        except DatabaseError as error:
            if self.context.ledger.broken:
                raise
            # A window that the database refuses must not hold up the others.
            reason = f"publishing failed: {str(error).strip().splitlines()[0]}"
            return self._record_failure(claim, reason, {RepairFailure.REFUSED_ROWS}, rebuilt, verdict)
        if not published:
            return RepairOutcome(changed=1)
        self.fault_point.stop_after(RepairStep.PUBLISHED)
        return RepairOutcome(published=1)

    def _record_unreadable(self, claim: ClaimedWindow, reason: str) -> RepairOutcome:
        return self._record_failure(claim, f"reading raw failed: {reason}", {RepairFailure.UNREADABLE_FILE})

    def _record_failure(
        self,
        claim: ClaimedWindow,
        reason: str,
        failures: Collection[RepairFailure],
        rebuilt: RebuiltWindow | None = None,
        verdict: Verdict | None = None,
    ) -> RepairOutcome:
        log.error("window %s: %s", format_moment(claim.window_start), reason)
        findings = add_failed_proof(reason, failures, verdict)
        max_tries = self.context.pipeline.repair.max_tries
        blocked = repair_tries.record_failed_try(
            self.context.ledger, self.registered, claim, reason, max_tries, failures, findings, rebuilt
        )
        return RepairOutcome(failed=1, blocked=int(blocked))


def freeze(context: PipelineContext, leases: Leases, starts: Sequence[datetime]) -> Mapping[datetime, int]:
    """Return the length of each window's file, 0 for a missing one, once no writer is in the middle of an append."""
    for start in context.files.read_lengths(starts):
        path = context.layout.window_file(start)
        if leases.is_closed(path):
            continue
        # A live writer finishes in its own time; the lease is taken only when no live writer can hold it.
        patience = SOFT_LIMIT_SECONDS if list_in_flight(context.ledger, context.name) else 0.0
        if not leases.wait_until_closed(path, patience):
            log.warning("%s is open, its writer is dead: recovering its lease", path)
            leases.recover(path)
    return dict.fromkeys(starts, 0) | context.files.read_lengths(starts)


def read_own_offsets(context: PipelineContext) -> tuple[OffsetRange, ...]:
    """Return all offsets from each origin on. Read them after the files whose lines they judge."""
    marker = context.markers.read_newest_readable().marker
    origins = join_origins([marker.origins if marker else {}, read_origins(context.ledger, context.name)])
    return tuple(OffsetRange(source, origin, LARGEST_END) for source, origin in sorted(origins.items()))


def explain_unknown(context: PipelineContext, names: Sequence[str]) -> str:
    """Return why lines that landed nowhere do not count, and the way out; `names` are the contracts they name."""
    name, folder = context.name, context.layout.contract_folder
    files = ", ".join(sorted({f"{folder}/V{each[1:]}.json" for each in names}))
    return (
        f"raw holds lines of {', '.join(names)} that never landed, and this ledger does not know that contract: if it "
        f"was restored from a backup older than a migration, put the contract of {files} into "
        f"pipelines/{name}.toml and run `onceover pipelines migrate {name}`; if the lines are not the pipeline's, take "
        "them out"
    )
