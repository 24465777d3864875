"""The plan and the result of a repair, as tables and sentences, and as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.filesize import decimal

from onceover.cli.exit_codes import FAILED, TRY_LATER, USAGE, WRONG_TOML
from onceover.cli.output import Part, Table
from onceover.detection.detect import Detection
from onceover.detection.plan import RepairPlan
from onceover.explain.finding_text import describe_finding
from onceover.explain.plan import describe_plan
from onceover.model.finding import Finding
from onceover.model.gap import Reason
from onceover.model.wording import pluralize
from onceover.repair.confirmation import Confirmation
from onceover.repair.range_outcome import RangeOutcome

_MAX_ROWS = 40


@dataclass(frozen=True, slots=True)
class Result:
    """One repair from detection to confirmation. `spark_exit_code` is the Spark application's, 0 if none ran."""

    detection: Detection
    confirmation: Confirmation | None = None
    spark_exit_code: int = 0
    unjudged: Mapping[str, int] | None = None  # where no window was judged: the range's windows, counted by state
    requested: RangeOutcome | None = None

    @property
    def outcomes(self) -> dict[str, tuple[str, str]]:
        """Return each failed window's outcome and its reason."""
        outcomes: dict[str, tuple[str, str]] = {}
        if self.confirmation is not None:
            outcomes = self.confirmation.outcomes
        left = "the repair ended early" if self.spark_exit_code else "another repair held it when it was judged"
        failed = [str(each.window) for each in self.detection.failed]
        return {window: outcomes.get(window, ("left", left)) for window in failed}

    @property
    def exit_code(self) -> int:
        states = {state for state, _ in self.outcomes.values()}
        requested = self.requested
        if (requested is not None and requested.failed) or states & {"revoked", "failed", "blocked", "cancelled"}:
            return FAILED
        if self.spark_exit_code:
            return self.spark_exit_code if self.spark_exit_code in (USAGE, TRY_LATER, WRONG_TOML) else FAILED
        if any(_needs_decision(finding) for finding in self.detection.findings):
            return FAILED
        is_pending = requested.pending if requested is not None else "left" in states or self.detection.waiting
        return TRY_LATER if is_pending else 0

    def as_dict(self) -> dict[str, object]:
        findings = {str(each.window): each.findings for each in self.detection.failed}
        return {
            "detection": self.detection,
            "confirmation": self.confirmation,
            "windows": [
                {"window": window, "findings": findings[window], "outcome": state, "why": why or None}
                for window, (state, why) in self.outcomes.items()
            ],
            "range": self.requested,
            "exit_code": self.exit_code,
        }


def describe_planned(plan: RepairPlan) -> Iterator[Part]:
    """Yield what a repair would do, and how to have exactly that done."""
    yield Table(
        plan.windows, ("window", lambda row: row.window.shown), ">lines", (">bytes", lambda row: decimal(row.bytes)),
        ">counted", (">in raw", "distinct"),
        (">change", lambda row: None if row.change is None else f"{row.change:+,}"),
        ("findings", lambda row: _format_kinds(row.findings)), most=None,
    )  # fmt: skip
    yield from describe_plan(plan.totals, plan.changing)
    if plan.windows:
        yield "To repair exactly this, or nothing if it has changed by then, give instead of --dry-run:"
        yield f"  --plan {plan.token}"
    yield "Nothing was written."


def describe_result(result: Result) -> Iterator[Part]:
    """Yield each failed window's outcome, the numbers, and what is left to do."""
    seen, outcomes, done = result.detection, result.outcomes, result.confirmation
    judged = f"{pluralize(seen.judged, 'window')} judged, {seen.certified} certified from the ledger"
    if seen.failed:
        troubled = {window: outcome for window, outcome in outcomes.items() if outcome[0] != "confirmed"}
        shown = outcomes if len(outcomes) <= _MAX_ROWS else troubled
        findings = {str(each.window): _format_kinds(each.findings) for each in seen.failed}
        names = {str(each.window): each.window.shown for each in seen.failed}
        yield Table(
            [(names[at], state, findings[at] + (f": {why}" if why else "")) for at, (state, why) in shown.items()],
            ("window", 0), ("outcome", 1), ("findings", 2), most=None,
        )  # fmt: skip
        line = f"{judged}, {len(outcomes) - len(troubled)} repaired and confirmed"
        line += f", {len(troubled)} not" if troubled else ""
        if done is not None:
            lines, duplicates = pluralize(done.lines_read, "line"), pluralize(done.duplicates, "duplicate")
            line += f"; {lines} read, {duplicates} ignored"
        yield line
    else:
        yield (
            f"nothing to repair: {judged}"
            if seen.judged
            else f"nothing to judge: {_describe_unjudged(result.unjudged)}"
        )
    if result.spark_exit_code:
        yield (
            f"The Spark application exited with {result.spark_exit_code}, see above. "
            "Run the same command again to repair the rest."
        )
    if requested := result.requested:
        repaired = {str(each.window) for each in seen.failed}
        for window, why in (each for each in (*requested.failed, *requested.pending) if each[0] not in repaired):
            yield f"{window} of the range is not right: {why}; see `onceover explain {seen.pipeline} {window}`"
        if requested.open and seen.judged:
            yield f"{pluralize(requested.open, 'window')} of the range still open; judged once closed."
    if seen.waiting:
        yield f"{pluralize(seen.waiting, 'window')} skipped: a batch or another repair holds them; retry in a minute."
    for finding in seen.findings:
        text = describe_finding(finding.kind, finding.evidence)
        look = finding.kind.meaning.look.format(pipeline=seen.pipeline)
        yield f"Of the whole pipeline: {text.what} {text.how} See `{look}`."


def _needs_decision(finding: Finding) -> bool:
    """Return whether offsets have expired in Kafka: later windows stay open until a person accepts the loss."""
    gaps = finding.evidence.get("gaps")
    return isinstance(gaps, list) and any(gap["reason"] == Reason.EXPIRED for gap in gaps)


def _format_kinds(findings: Sequence[Finding]) -> str:
    return ", ".join(str(finding.kind) for finding in findings) or "none, by force"


def _describe_unjudged(states: Mapping[str, int] | None) -> str:
    if not states:
        return "this range has no window, as no record with an event time in it was ever read"
    described = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    later = "; an open window is judged once it has closed" if "open" in states else ""
    return f"of the windows of this range are {described}{later}"
