"""The plan of a repair: what it would read and change, and a token, so that what was looked at is what is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from onceover.context import PipelineContext
from onceover.detection.look import PATIENCE_SECONDS, judge_windows
from onceover.detection.reopened import list_unlike_certified
from onceover.errors import ChangedPlanError
from onceover.ledger.landings import count_distinct_records, count_landed_lines
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.json_text import to_json
from onceover.model.window import Window, WindowRange, format_moment
from onceover.model.wording import pluralize
from onceover.retention.removal import refuse_expired

_MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class PlannedRepair:
    """One window of a dry run. `counted` are the records in the aggregates (None: unknown, as rows were changed by
    hand), `distinct` the records in raw by the ledger (None: unknown without reading raw). `version` is the window's
    in the ledger."""

    window: Window
    findings: tuple[Finding, ...]
    lines: int
    bytes: int
    counted: int | None
    distinct: int | None
    version: int

    @property
    def change(self) -> int | None:
        """The records by which the repair would change the aggregates; None if unknown before it."""
        return None if self.distinct is None or self.counted is None else self.distinct - self.counted

    def as_dict(self) -> dict[str, object]:
        return {
            "window": self.window,
            "end": self.window.end,
            "findings": self.findings,
            "lines": self.lines,
            "bytes": self.bytes,
            "counted": self.counted,
            "distinct": self.distinct,
            "change": self.change,
        }


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The windows that a repair of a range would rebuild. `changing` counts windows of the range that were left out, as
    batches are landing in them: they are not judged yet."""

    pipeline: str
    windows: tuple[PlannedRepair, ...]
    changing: int = 0

    @property
    def token(self) -> str:
        """The SHA-256 of windows, versions and kinds of findings: another plan has another token."""
        named = [
            [each.window.start, each.version, sorted(str(finding.kind) for finding in each.findings)]
            for each in sorted(self.windows, key=lambda each: each.window)
        ]
        return sha256(to_json([self.pipeline, named]).encode()).hexdigest()

    @property
    def totals(self) -> dict[str, int]:
        changes = [each.change for each in self.windows]
        return {
            "windows": len(self.windows),
            "lines": sum(each.lines for each in self.windows),
            "bytes": sum(each.bytes for each in self.windows),
            "change": sum(change for change in changes if change is not None),
            "unknown_changes": changes.count(None),
            "missing_files": sum(any(f.kind is Kind.MISSING_FILE for f in each.findings) for each in self.windows),
        }

    def as_dict(self) -> dict[str, object]:
        return {
            "pipeline": self.pipeline,
            "token": self.token,
            "windows": self.windows,
            "changing": self.changing,
            "totals": self.totals,
        }

    def require_windows(self, starts: Iterable[datetime]) -> None:
        """Raise ChangedPlanError unless a repair of exactly these windows is what the plan says."""
        planned, present = {each.window.start for each in self.windows}, set(starts)
        if planned != present:
            names = [*_name(present - planned, "now also"), *_name(planned - present, "no longer")]
            raise ChangedPlanError(_describe_change(self.pipeline, "; ".join(names)))


def plan_repair(
    context: PipelineContext, *, window_range: WindowRange, force: bool = False, patience: float = PATIENCE_SECONDS
) -> RepairPlan:
    """Return the windows whose repair `detect` with the same range would request. Writes nothing.

    Waits at most `patience` seconds for batches that may explain a finding."""
    registered, connection = context.require_same_contract(), context.ledger
    # `detect` reopens these.
    every = force or bool(list_unlike_certified(connection, registered.name, context.files, window_range))
    judged = judge_windows(connection, registered.name, context.files, window_range, every, patience)
    failed = [j for j in judged.judgements if not j.is_right or force]
    refuse_expired(connection, registered.name, window_range)
    starts = [j.evidence.window_start for j in failed]
    lines, distinct = (
        count_landed_lines(connection, registered.name, starts),
        count_distinct_records(connection, registered.name, starts),
    )
    windowing = registered.windowing
    rebuilt = tuple(
        PlannedRepair(
            window=windowing.window_at(j.evidence.window_start),
            findings=j.findings,
            lines=lines.get(j.evidence.window_start, 0),
            bytes=j.file_length or 0,
            counted=j.evidence.control.records if j.evidence.control is not None else None,
            distinct=distinct.get(j.evidence.window_start),
            version=j.evidence.version,
        )
        for j in failed
    )
    return RepairPlan(registered.name, rebuilt, judged.changing)


def require_plan(context: PipelineContext, window_range: WindowRange, token: str, *, force: bool) -> RepairPlan:
    """Return the range's plan. Raise ChangedPlanError, which names its windows, unless it has that token or no window:
    a repair of nothing is no more than was looked at, and so a run that did its repair may be cleared."""
    plan = plan_repair(context, window_range=window_range, force=force)
    if plan.windows and plan.token != token.strip():
        kinds = {each.window: ", ".join(sorted({str(f.kind) for f in each.findings})) for each in plan.windows}
        shown = [f"{window} ({kind or 'by force'})" for window, kind in sorted(kinds.items())[:_MAX_NAMED]]
        more = f" and {len(kinds) - _MAX_NAMED:,} more" if len(kinds) > _MAX_NAMED else ""
        now = f"a repair would rebuild {pluralize(len(kinds), 'window')} now"
        raise ChangedPlanError(_describe_change(plan.pipeline, f"{now}: {', '.join(shown)}{more}" if shown else now))
    return plan


def _describe_change(pipeline: str, change: str) -> str:
    return f"{pipeline} changed since you looked: {change}. Nothing was requested; look again, and repair what is shown"


def _name(starts: Iterable[datetime], how: str) -> list[str]:
    names = [format_moment(start) for start in sorted(starts)]
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return [f"{how} {', '.join(names[:_MAX_NAMED])}{more}"] if names else []
