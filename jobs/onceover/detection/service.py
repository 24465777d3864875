"""Detection for Airflow and the command line: judge windows and request their repair, or only plan it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate, islice

from onceover.context import PipelineContext
from onceover.detection import holes
from onceover.detection.certify import certify_from_ledger
from onceover.detection.cuts import compare_log
from onceover.detection.look import Look, judge_windows
from onceover.detection.pending import add_findings, reopen_pending
from onceover.detection.searchable_days import find_searchable_days
from onceover.detection.searchable_windows import find_searchable_windows
from onceover.detection.unexplained_files import list_unexplained_files, reopen_unexplained
from onceover.detection.unknown_files import register_unknown_files
from onceover.errors import BusyError, UsageError
from onceover.ledger import drivers, refills, repair_requests
from onceover.ledger import findings as ledger_findings
from onceover.ledger.frontiers import read_holes
from onceover.ledger.landings import count_distinct_records, count_landed_lines
from onceover.ledger.log_cuts import WHY_CUT
from onceover.model.finding import Finding, is_log_cut
from onceover.model.offsets import OffsetRange, subtract
from onceover.model.reason import clean_reason
from onceover.model.window import Window, WindowRange
from onceover.retention.expire import refuse_expired

log = logging.getLogger(__name__)
MOST_REQUESTED = 2_000
"""Windows that one scheduled detection requests."""
MOST_LINES_REQUESTED = 100_000_000
"""Lines of these windows, unless one has more alone: some minutes of a repair."""


@dataclass(frozen=True, slots=True)
class FailedWindow:
    """A failed window with its findings."""

    window: Window
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, object]:
        return {
            "window": self.window,
            "end": self.window.end,
            "findings": self.findings,
        }


@dataclass(frozen=True, slots=True)
class Detection:
    """The result of one detection. `waiting` counts windows that are changing or claimed now, and that the next
    detection judges; `refills` are the offset ranges that the requested repair reads again."""

    pipeline: str
    judged: int
    certified: int
    failed: tuple[FailedWindow, ...]
    waiting: int
    blocked: int
    open: int
    findings: tuple[Finding, ...]
    request_id: int | None
    refills: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        return {
            "pipeline": self.pipeline,
            "judged": self.judged,
            "certified": self.certified,
            "failed": self.failed,
            "waiting": self.waiting,
            "blocked": self.blocked,
            "open": self.open,
            "findings": self.findings,
            "refills": self.refills,
            "request_id": self.request_id,
        }


@dataclass(frozen=True, slots=True)
class PlannedRepair:
    """One window of a dry run. `counted` are the records in the aggregates (None: unknown, as rows were changed by
    hand), `distinct` the records in raw by the ledger (None: unknown without reading raw)."""

    window: Window
    findings: tuple[Finding, ...]
    lines: int
    bytes: int
    counted: int | None
    distinct: int | None

    @property
    def change(self) -> int | None:
        """The records by which the repair would change the aggregates; None if unknown before it."""
        return None if self.distinct is None or self.counted is None else self.distinct - self.counted

    def as_dict(self) -> dict[str, object]:
        return {
            **FailedWindow(self.window, self.findings).as_dict(),
            "lines": self.lines,
            "bytes": self.bytes,
            "counted": self.counted,
            "distinct": self.distinct,
            "change": self.change,
        }


def detect(
    context: PipelineContext,
    *,
    who: str,
    why: str | None = None,
    window_range: WindowRange | None = None,
    force: bool = False,
) -> Detection:
    """Judge closed windows that are not certified; certify the right ones from the ledger, request repair of the rest.

    With a range, judges only its windows, blocked ones too (a person or a backfill requested them); with `force`,
    certified ones as well. Leaves windows that another repair holds to it. `request_id` is None if nothing is to be
    repaired; Spark need not start then. Raises UsageError for an empty reason, `force` without a range, or an expired
    range.
    """
    reason = _reason(why, window_range, force)
    context.require_own_root()  # a ledger that lost a pipeline with raw is no pipeline that has not run yet
    if window_range is None and not context.is_registered():
        # A schedule runs for every pipeline; one that has not run yet is not a failure.
        return Detection(context.name, 0, 0, (), 0, 0, 0, (), None)
    registered, connection = context.require_same_contract(), context.ledger
    is_compared = compare_log(context)
    if window_range is None:
        register_unknown_files(context, registered)
    # A person who names windows, or a hole, may concern records that only the length of a certified file shows.
    is_searched = window_range is not None or read_holes(connection, registered.name)
    unexplained = reopen_unexplained(context, window_range) if is_searched else ()
    pending = reopen_pending(context)
    judged = add_findings(judge_windows(connection, registered.name, context.files, window_range, force), pending)
    if not is_compared:
        log.warning("no window of %s is certified until its log was compared with what landed", context.name)
        judged = replace(judged, judgements=(), changing=judged.changing + len(judged.judgements))
    keep = [j for j in judged.judgements if window_range is not None or j.evidence.window_start not in judged.blocked]
    certified = certify_from_ledger(
        connection,
        registered,
        [(j.evidence, j.findings) for j in keep if j.is_right and not j.evidence.is_certified],
        judged.accounted,
        who,
        reason,
    )
    plan = holes.plan_refills(context, judged.findings)
    failed = {j.evidence.window_start: j.findings for j in keep if not j.is_right or force}
    searchable = find_searchable_windows(context, plan.expired, window_range, unexplained)
    if not searchable:
        refuse_expired(connection, registered.name, window_range)
    failed |= searchable
    free = {start: findings for start, findings in sorted(failed.items()) if start not in judged.claimed}
    if window_range is None:
        # The next scheduled detection requests the rest: no pipeline holds up the others for hours.
        free = dict(islice(free.items(), MOST_REQUESTED))
        lines = count_landed_lines(connection, registered.name, list(free))
        free = dict(islice(free.items(), count_first([lines.get(start, 0) for start in free])))
    # A live driver carries out what was requested. Without one, a scheduled detection takes that over.
    is_left = window_range is None and not drivers.is_alive(connection, registered.name)
    again = subtract(plan.again, () if is_left else refills.list_wanted(connection, registered.name))
    quarantined = _list_searchable_days(context, window_range, judged, plan.expired)
    request_id = None
    if free or again or quarantined:
        request_id = repair_requests.create_request(
            connection, registered.name, who, reason, free, unblock=window_range is not None
        )
        if again:
            refills.record_refills(connection, registered.name, request_id, again)
    # Refills are requested by now: to read a hole in order to explain it takes long, and may be killed.
    of_pipeline = holes.explain_holes(context, judged.findings)
    ledger_findings.record_findings(connection, registered.name, None, of_pipeline)
    return Detection(
        pipeline=registered.name,
        judged=len(judged.judgements),
        certified=len(certified),
        failed=tuple(
            FailedWindow(Window.at(start, registered.contract.window_minutes), findings)
            for start, findings in sorted(failed.items())
        ),
        waiting=judged.changing + len(failed) - len(free),
        blocked=len(judged.blocked),
        open=judged.open_windows,
        findings=of_pipeline,
        refills=tuple(map(str, again)),
        request_id=request_id,
    )


def count_first(lines: Iterable[int]) -> int:
    """Return how many windows, with so many lines each, one scheduled detection requests: the first one, and those
    after it up to MOST_LINES_REQUESTED."""
    return max(1, sum(total <= MOST_LINES_REQUESTED for total in accumulate(lines)))


def plan_repair(
    context: PipelineContext, *, window_range: WindowRange, force: bool = False
) -> tuple[PlannedRepair, ...]:
    """Return the windows whose repair `detect` with the same range would request. Writes nothing.

    Raises BusyError while a log that was cut keeps all windows from being judged."""
    registered, connection = context.require_same_contract(), context.ledger
    unexplained = list_unexplained_files(connection, registered.name, context.files, window_range)
    every = force or any(file.expected.is_certified for file in unexplained)  # `detect` reopens these
    judged = judge_windows(connection, registered.name, context.files, window_range, every)
    if is_log_cut(judged.findings):
        raise BusyError(f"no window of {registered.name} is judged now: {WHY_CUT}")
    failed = [j for j in judged.judgements if not j.is_right or force]
    expired = holes.plan_refills(context, judged.findings).expired
    searchable = find_searchable_windows(context, expired, window_range, unexplained)
    if not searchable:
        refuse_expired(connection, registered.name, window_range)
    starts = [*(j.evidence.window_start for j in failed), *searchable]
    lines, distinct = (
        count_landed_lines(connection, registered.name, starts),
        count_distinct_records(connection, registered.name, starts),
    )
    minutes = registered.contract.window_minutes
    rebuilt = (
        PlannedRepair(
            window=Window.at(j.evidence.window_start, minutes),
            findings=j.findings,
            lines=lines.get(j.evidence.window_start, 0),
            bytes=j.file_length or 0,
            counted=j.evidence.control.records if j.evidence.control is not None else None,
            distinct=distinct.get(j.evidence.window_start),
        )
        for j in failed
    )
    searched = (
        PlannedRepair(
            Window.at(start, minutes),
            findings,
            lines.get(start, 0),
            _read_length(findings),
            counted=None,
            distinct=None,
        )
        for start, findings in searchable.items()
    )
    return (*rebuilt, *searched)


def _read_length(findings: Sequence[Finding]) -> int:
    return max((int(str(finding.evidence["file_length"])) for finding in findings), default=0)


def _list_searchable_days(
    context: PipelineContext, window_range: WindowRange | None, judged: Look, expired: Sequence[OffsetRange]
) -> list[date]:
    """Return the days of quarantine that a repair has to search for orphans: none while a batch in flight may explain
    their bytes, unless a hole has expired."""
    if window_range is not None or (judged.in_flight and not expired):
        return []
    return find_searchable_days(context, context.files.list_quarantine_days())


def _reason(why: str | None, window_range: WindowRange | None, force: bool) -> str:
    if force and window_range is None:
        raise UsageError("force needs a range of windows: without one it would select every window; name the range")
    if why is None:
        return "scheduled detection"
    reason = clean_reason(why)
    if reason is None:
        raise UsageError("the reason is empty; say why these windows are repaired")
    return reason
