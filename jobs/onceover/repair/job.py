"""The repair job: freeze, rebuild, stage, prove and publish a request's windows, each failing alone."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.detection.own_offsets import read_own_offsets
from onceover.errors import AccessDeniedError, FencedError, is_denied
from onceover.fault_points import FaultPoint, RepairStep
from onceover.ledger import repair_requests
from onceover.ledger.adoptions import Orphans, adopt
from onceover.ledger.catalog import RegisteredPipeline, require_in_force
from onceover.ledger.database import DatabaseError
from onceover.model.claim import ClaimedWindow
from onceover.model.offsets import OffsetRange
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.repair_failure import RepairFailure
from onceover.model.unlanded import Unlanded
from onceover.model.window import format_moment
from onceover.raw.frozen_file import FrozenText
from onceover.repair import publish
from onceover.repair.expired_windows import end_search, stage_orphans
from onceover.repair.folded import FoldedRebuild
from onceover.repair.freeze import freeze, list_compacted, list_texts
from onceover.repair.progress import WindowProgress
from onceover.repair.proof import Verdict, add_failed_proof, prove
from onceover.repair.shared_ranges import find_shared
from onceover.repair.suspicions import WAITS, record_conflicts, settle_suspicions
from onceover.repair.unknown_contracts import explain_unknown
from onceover.repair.unread import Unread, find_unread, list_doubtful
from onceover.spark.copy_text import format_copy_lines
from onceover.spark.failure import isolate_failures
from onceover.spark.hdfs_leases import open_leases
from onceover.spark.session import choose_codegen

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """Counts of windows by outcome; `blocked` ones also count as failed."""

    published: int = 0
    changed: int = 0
    failed: int = 0
    blocked: int = 0
    adopted: int = 0  # windows whose orphans were adopted: their repair starts again

    def __add__(self, other: RepairOutcome) -> RepairOutcome:
        return RepairOutcome(
            self.published + other.published,
            self.changed + other.changed,
            self.failed + other.failed,
            self.blocked + other.blocked,
            self.adopted + other.adopted,
        )


class RepairRun:
    """The repair of one request, on one Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        context: PipelineContext,
        registered: RegisteredPipeline,
        request: repair_requests.RepairRequest,
        fault_point: FaultPoint,
        progress: WindowProgress,
    ) -> None:
        self._spark, self._connection, self._registered, self._request = spark, context.ledger, registered, request
        self._context, self._files = context, context.files
        self._max_tries = context.pipeline.repair.max_tries
        self._waits: Mapping[datetime, str] | None = None
        self._progress = progress
        self._leases, self._fault_point = open_leases(spark, context), fault_point

    def run(self, claimed: Sequence[ClaimedWindow], accounted: Sequence[OffsetRange]) -> RepairOutcome:
        """Repair the claimed windows of one group by one query; if that query fails, in halves, until the bad window is
        alone. May be called for one group after the other.

        Raises ContractChangedError if the pipeline was migrated before the claim: the windows may then hold records of
        the new contract, which this process cannot read. A later migration does not affect them.
        """
        if not claimed:
            return RepairOutcome()
        require_in_force(self._connection, self._registered)
        self._context.require_own_root()
        if self._waits is None or any(claim.contested.suspected for claim in claimed):
            claimed, self._waits = settle_suspicions(self._spark, self._context, claimed)

        def repair_windows(some: Sequence[ClaimedWindow]) -> RepairOutcome:
            return self._repair_windows(some, accounted)

        def record_failure(claim: ClaimedWindow, reason: str) -> RepairOutcome:
            return self._record_failure(claim, f"reading raw failed: {reason}", {RepairFailure.UNREADABLE_FILE})

        return sum(isolate_failures(claimed, repair_windows, record_failure), RepairOutcome())

    def _repair_windows(self, claimed: Sequence[ClaimedWindow], accounted: Sequence[OffsetRange]) -> RepairOutcome:
        frozen = freeze(self._context, self._leases, [claim.window_start for claim in claimed])
        compacted = {claim.window_start: claim.compacted for claim in claimed if claim.compacted}
        texts, replacing = list_texts(self._files, frozen), list_compacted(self._files, compacted)
        size = sum(frozen.values()) + sum(file.length for file in replacing.values())
        log.info("reading %d window files, %d compacted ones, %.1f MiB", len(texts), len(replacing), size / 2**20)
        self._progress.add_bytes(size)
        registered, stage = self._registered, self._request.stage
        table = registered.table
        try:
            with (
                choose_codegen(self._spark, size),
                closing(self._open_rebuild(claimed, accounted, texts, replacing)) as rebuild,
            ):
                rebuilt = rebuild.collect()
                if denied := next(filter(is_denied, rebuild.failures.values()), None):
                    raise AccessDeniedError(denied)  # before a window loses a try
                rebuilt = rebuild.compare_windows(rebuilt, list_doubtful(claimed, rebuilt))
                unlanded = self._find_unlanded(rebuild, rebuilt)
                if any(found is not None and found.conflicts for found in unlanded.values()):
                    rebuilt = rebuild.add_contested_ids(rebuilt)
                aggregated = rebuild.aggregate()
                rows = iter(()) if aggregated is None else format_copy_lines(aggregated, registered.columns.names)
                staged = table.stage(self._connection, stage, rows)
                unread = find_unread(self._context, rebuild, list_doubtful(claimed, rebuilt, unlanded))
            self._fault_point.stop_after(RepairStep.STAGED)
            log.info("read %d lines, staged %d rows", sum(r.lines for r in rebuilt.values()), staged)
            outcome, failures = RepairOutcome(), rebuild.failures
            for claim in (claim for claim in claimed if claim.window_start in failures):
                reason = f"reading raw failed: {failures[claim.window_start]}"
                outcome += self._record_failure(claim, reason, {RepairFailure.UNREADABLE_FILE})
            read = [claim for claim in claimed if claim.window_start not in failures]
            every = {**unlanded, **unread.windows}
            adopted, rest = self._adopt(read, texts, every, unread)
            outcome += adopted
            for claim in rest:
                start = claim.window_start
                if (found := every.get(start)) and found.unknown:
                    reason, verdict = explain_unknown(self._context, found.unknown), prove(claim, rebuilt[start], found)
                    outcome += self._record_failure(
                        claim, reason, {RepairFailure.UNKNOWN_CONTRACT}, rebuilt[start], verdict
                    )
                else:
                    outcome += self._judge(claim, rebuilt[start], accounted, unlanded.get(start, Unlanded()))
        finally:
            if not self._connection.broken:
                table.unstage(self._connection, stage)
        return outcome

    def _open_rebuild(
        self,
        claimed: Sequence[ClaimedWindow],
        accounted: Sequence[OffsetRange],
        texts: Mapping[datetime, FrozenText],
        compacted: Mapping[datetime, FrozenText],
    ) -> FoldedRebuild:
        return FoldedRebuild(
            self._spark,
            self._context.raw_address,
            self._registered.contracts,
            claimed,
            accounted,
            texts,
            find_shared(claimed),
            compacted,
        )

    def _find_unlanded(
        self, rebuild: FoldedRebuild, rebuilt: Mapping[datetime, RebuiltWindow]
    ) -> Mapping[datetime, Unlanded | None]:
        """Return the windows with intact lines that no landing accounts for, None for each if Kafka does not answer, or
        while there are too many such lines to collect.

        Kafka is asked after the files were frozen: what it holds from then on, ingest or a refill lands. Raises
        RootRefusedError if it is another cluster than raw was read from.
        """
        unexplained = [start for start, window in rebuilt.items() if window.unaccounted_lines]
        if not unexplained:
            return {}
        held = self._context.read_held(f"{len(unexplained)} windows with lines that no landing accounts for")
        if held is None:
            return dict.fromkeys(unexplained)
        found, is_whole = rebuild.collect_unlanded(held, read_own_offsets(self._context, held))
        return found if is_whole else dict.fromkeys(unexplained) | found

    def _adopt(
        self,
        claimed: Sequence[ClaimedWindow],
        texts: Mapping[datetime, FrozenText],
        unlanded: Mapping[datetime, Unlanded | None],
        unread: Unread,
    ) -> tuple[RepairOutcome, list[ClaimedWindow]]:
        """Adopt the orphans of these windows, and return the windows without orphans, to be judged, and those with
        lines of a contract that the ledger does not know: none is adopted under another one."""
        orphans: dict[datetime, Orphans] = {}
        rest: list[ClaimedWindow] = []
        for claim in claimed:
            found, start = unlanded.get(claim.window_start), claim.window_start
            stage = f"{self._request.stage}:{start:%Y%m%d%H%M}" if claim.is_expired else None
            if (
                found is None
                or not found.orphans
                or found.unknown
                or not (
                    stage is None
                    or stage_orphans(self._spark, self._context, self._registered, claim, found, texts[start], stage)
                )
            ):
                rest.append(claim)
                continue
            covering = unread.landing_ids if start in unread.windows else None
            orphans[start] = Orphans(
                start,
                None,
                found.orphans,
                found.parts,
                texts[start].length,
                claim.token,
                claim.version,
                stage,
                covering,
            )
        if not orphans:
            return RepairOutcome(), rest
        who, why = self._request.who, self._request.why
        adopted = adopt(self._connection, self._registered, list(orphans.values()), who, why)
        for stage in filter(None, (each.stage for each in orphans.values())):
            self._registered.table.unstage(self._connection, stage)
        for start, each in orphans.items():
            log.warning(
                "window %s: %d records that only raw holds, and that never landed, %s",
                format_moment(start),
                sum(map(len, each.ids)),
                "are adopted" if each in adopted else "changed meanwhile",
            )
        self._fault_point.stop_after(RepairStep.ADOPTED)
        return RepairOutcome(adopted=len(orphans)), rest

    def _judge(
        self,
        claim: ClaimedWindow,
        rebuilt: RebuiltWindow,
        accounted: Sequence[OffsetRange],
        unlanded: Unlanded | None,
    ) -> RepairOutcome:
        if unlanded is None:
            publish.leave(self._connection, claim, "which of its unlanded records Kafka holds is not known yet")
            return RepairOutcome(changed=1)
        if claim.is_open and not unlanded.conflicts:
            end_search(
                self._connection, self._registered.name, claim, None if unlanded.pending else rebuilt.frozen_length
            )
            return RepairOutcome()
        verdict = prove(claim, rebuilt, unlanded)
        if verdict.waits:
            publish.leave(self._connection, claim, (self._waits or {}).get(claim.window_start, WAITS))
            return RepairOutcome(changed=1)
        if not verdict.is_proved:
            record_conflicts(self._connection, self._registered, claim, rebuilt, verdict.doubtful)
            more = len(verdict.reasons) - 3
            reason = "; ".join(verdict.reasons[:3]) + (f"; and {more} more" if more > 0 else "")
            return self._record_failure(claim, reason, verdict.failures, rebuilt, verdict)
        try:
            proved = publish.ProvedWindow(claim, rebuilt, accounted, verdict.findings, unlanded.pending)
            published = publish.publish(self._connection, self._registered, self._request, proved)
        except FencedError as error:
            log.warning("%s", error)
            publish.reopen(self._connection, claim, str(error))
            return RepairOutcome(changed=1)
        except DatabaseError as error:
            if self._connection.broken:
                raise
            # A window that the database refuses must not hold up the others.
            reason = f"publishing failed: {str(error).strip().splitlines()[0]}"
            return self._record_failure(claim, reason, {RepairFailure.REFUSED_ROWS}, rebuilt, verdict)
        if not published:
            return RepairOutcome(changed=1)
        self._fault_point.stop_after(RepairStep.PUBLISHED)
        return RepairOutcome(published=1)

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
        blocked = publish.record_failed_try(
            self._connection, self._registered, claim, reason, self._max_tries, failures, findings, rebuilt
        )
        return RepairOutcome(failed=1, blocked=int(blocked))
