"""What Airflow and the command line ask of detection: judge windows, request their repair, or only plan it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from onceover.context import PipelineContext
from onceover.detection import evidence, holes
from onceover.detection.look import judge_windows
from onceover.errors import UsageError
from onceover.ledger import findings as ledger_findings
from onceover.ledger import refills, repair_requests
from onceover.ledger.catalog import require_in_force
from onceover.ledger.queries import count_distinct_records, count_landed_lines
from onceover.model.finding import Finding
from onceover.model.offsets import split
from onceover.model.reason import clean_reason
from onceover.model.window import Window, WindowRange
from onceover.retention.expire import refuse_expired


@dataclass(frozen=True, slots=True)
class FailedWindow:
    """A window with its findings."""

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
    """What one detection judged. `waiting` windows are changing or claimed right now and are judged again next time;
    `refills` are offset ranges that the repair has read again."""

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
    """One row of a dry run. `counted` is what the aggregates count now (None: somebody changed them, nobody knows);
    `distinct` what raw should hold, as far as the ledger alone can tell (None: only reading raw will)."""

    window: Window
    findings: tuple[Finding, ...]
    lines: int
    bytes: int
    counted: int | None
    distinct: int | None

    @property
    def change(self) -> int | None:
        """By how many records the aggregates would change, as far as that is known before."""
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

    With a range, only its windows, blocked ones too (a person or a backfill asked for them); with `force`, those whose
    certificate stands as well. Windows that another repair holds are left to it. `request_id` is None if there is
    nothing to repair, and then no Spark need start.
    """
    reason = _reason(why, window_range, force)
    if window_range is None and not context.is_registered():
        # A schedule looks at every pipeline there is; one that was only just written is no failure.
        return Detection(context.name, 0, 0, (), 0, 0, 0, (), None)
    known, connection = context.require_same_contract(), context.ledger
    refuse_expired(connection, known.name, window_range)
    judged = judge_windows(connection, known.name, context.files, window_range, force)
    keep = [j for j in judged.judgements if window_range is not None or j.evidence.window_start not in judged.blocked]
    certified = evidence.certify_from_ledger(
        connection,
        known,
        [(j.evidence, j.findings) for j in keep if j.is_right and not j.evidence.is_certified],
        judged.accounted,
        who,
        reason,
    )
    of_pipeline, missing = holes.explain_holes(context, judged.findings)
    ledger_findings.record_findings(connection, known.name, None, of_pipeline)
    failed = {j.evidence.window_start: j.findings for j in keep if not j.is_right or force}
    free = {start: findings for start, findings in failed.items() if start not in judged.claimed}
    # A scheduled detection takes over what an earlier repair has left; others ask only for what nobody asked for.
    asked_for = set() if window_range is None else set(refills.list_wanted(connection, known.name))
    # Each is read by one batch, and a batch has one contract.
    pieces = chain.from_iterable(known.cutovers.cut_by_version(missing).values())
    again = [r for r in split(pieces, context.pipeline.ingest.max_records_per_batch) if r not in asked_for]
    request_id = None
    if again:
        require_in_force(connection, known)  # else they are cut where the contract of before was
    if free or again:
        request_id = repair_requests.create_request(
            connection, known.name, who, reason, free, unblock=window_range is not None
        )
        refills.record_refills(connection, known.name, request_id, again)
    return Detection(
        pipeline=known.name,
        judged=len(judged.judgements),
        certified=len(certified),
        failed=tuple(
            FailedWindow(Window.at(start, known.contract.window_minutes), findings)
            for start, findings in sorted(failed.items())
        ),
        waiting=judged.changing + len(failed) - len(free),
        blocked=len(judged.blocked),
        open=judged.open_windows,
        findings=of_pipeline,
        refills=tuple(map(str, again)),
        request_id=request_id,
    )


def plan_repair(
    context: PipelineContext, *, window_range: WindowRange, force: bool = False
) -> tuple[PlannedRepair, ...]:
    """What `detect` with the same range would have repaired: windows, reasons, lines, bytes, change. Writes nothing."""
    known, connection = context.require_same_contract(), context.ledger
    refuse_expired(connection, known.name, window_range)
    judged = judge_windows(connection, known.name, context.files, window_range, force)
    wanted = [j for j in judged.judgements if not j.is_right or force]
    starts = [j.evidence.window_start for j in wanted]
    lines, distinct = (
        count_landed_lines(connection, known.name, starts),
        count_distinct_records(connection, known.name, starts),
    )
    return tuple(
        PlannedRepair(
            window=Window.at(j.evidence.window_start, known.contract.window_minutes),
            findings=j.findings,
            lines=lines.get(j.evidence.window_start, 0),
            bytes=j.file_length or 0,
            counted=j.evidence.control.records if j.evidence.control is not None else None,
            distinct=distinct.get(j.evidence.window_start),
        )
        for j in wanted
    )


def _reason(why: str | None, window_range: WindowRange | None, force: bool) -> str:
    if force and window_range is None:
        raise UsageError("force needs a range of windows: without one it would mean every window there is")
    if why is None:
        return "scheduled detection"
    reason = clean_reason(why)
    if reason is None:
        raise UsageError("the reason is empty; say why these windows are repaired")
    return reason
