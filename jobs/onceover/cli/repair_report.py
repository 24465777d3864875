"""The plan and the result of a repair, as tables and as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.filesize import decimal

from onceover.cli.exit_codes import FAILED, TRY_LATER, USAGE, WRONG_TOML
from onceover.cli.output import draw_table, say, style
from onceover.detection.plan import RepairPlan
from onceover.detection.service import Detection
from onceover.explain.finding_text import describe_finding
from onceover.model.finding import Finding
from onceover.model.gap import Reason
from onceover.model.wording import pluralize
from onceover.repair.range_outcome import RangeOutcome
from onceover.repair.service import Confirmation

_MOST_ROWS = 40


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


def show_plan(plan: RepairPlan) -> None:
    planned = plan.windows
    left_out = f"{pluralize(plan.changing, 'window')} left out: batches are landing in them; look again in a minute."
    if not planned:
        say("nothing to repair: no closed window of this range is wrong. Nothing was written.")
        if plan.changing:
            say(left_out)
        return
    say(
        draw_table(
            ["window", ">lines", ">bytes", ">counted", ">in raw", ">change", "findings"],
            (
                (
                    str(row.window),
                    row.lines,
                    decimal(row.bytes),
                    row.counted,
                    row.distinct,
                    None if row.change is None else f"{row.change:+,}",
                    _format_kinds(row.findings),
                )
                for row in planned
            ),
        )
    )
    lines, size = sum(row.lines for row in planned), sum(row.bytes for row in planned)
    say(f"a repair would read {pluralize(len(planned), 'window')}, {pluralize(lines, 'line')}, {decimal(size)}.")
    if any(row.change is None for row in planned):
        say("Where the change is -, it is known only after raw is read.")
    if plan.changing:
        say(left_out)
    say("To repair exactly this, or nothing if it has changed by then, give instead of --dry-run:")
    say(f"  --plan {plan.token}", whole=True)
    say("Nothing was written.")


def show_result(result: Result) -> None:
    seen, outcomes = result.detection, result.outcomes
    if not seen.failed:
        say(
            f"nothing to repair: {pluralize(seen.judged, 'window')} judged, {seen.certified} certified from the ledger"
            if seen.judged
            else f"nothing to judge: {_describe_unjudged(result.unjudged)}"
        )
    else:
        troubled = {window: outcome for window, outcome in outcomes.items() if outcome[0] != "confirmed"}
        shown = outcomes if len(outcomes) <= _MOST_ROWS else troubled
        findings = {str(each.window): _format_kinds(each.findings) for each in seen.failed}
        if shown:
            say(
                draw_table(
                    ["window", "outcome", "findings"],
                    (
                        (window, style(state), findings[window] + (f": {why}" if why else ""))
                        for window, (state, why) in shown.items()
                    ),
                )
            )
        confirmed = len(outcomes) - len(troubled)
        line = (
            f"{pluralize(seen.judged, 'window')} judged, {seen.certified} certified from the ledger, "
            f"{confirmed} repaired and confirmed"
        )
        if troubled:
            line += f", {len(troubled)} not"
        if result.confirmation is not None:
            line += (
                f"; {pluralize(result.confirmation.lines_read, 'line')} read, "
                f"{pluralize(result.confirmation.duplicates, 'duplicate')} ignored"
            )
        say(line)
    if result.spark_exit_code:
        say(
            f"The Spark application exited with {result.spark_exit_code}, see above. "
            "Run the same command again to repair the rest."
        )
    if requested := result.requested:
        repaired = {str(each.window) for each in seen.failed}
        for window, why in (each for each in (*requested.failed, *requested.pending) if each[0] not in repaired):
            say(f"{window} of the range is not right: {why}; see `onceover explain {seen.pipeline} {window}`")
        if requested.open and seen.judged:
            say(f"{pluralize(requested.open, 'window')} of the range still open; judged once closed.")
    if seen.waiting:
        say(f"{pluralize(seen.waiting, 'window')} skipped: a batch or another repair holds them; retry in a minute.")
    for finding in seen.findings:
        text = describe_finding(finding.kind, finding.evidence)
        look = finding.kind.meaning.look.format(pipeline=seen.pipeline)
        say(f"Of the whole pipeline: {text.what} {text.how} See `{look}`.")


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
