"""Whether a person got the range of windows that was requested: which are not certified, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onceover.context import PipelineContext
from onceover.ledger import repair_requests
from onceover.ledger.windows import WindowState, list_windows
from onceover.model.window import WindowRange, format_moment
from onceover.model.wording import pluralize
from onceover.repair.confirmation import Confirmation

_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    """The closed windows of a range that are neither confirmed nor in need of nothing, each with its reason: `failed`
    ones need a person, `pending` ones are held by another repair or are judged again. `open` counts windows that are
    judged once they have closed."""

    pipeline: str
    window_range: WindowRange
    failed: tuple[tuple[str, str], ...] = ()
    pending: tuple[tuple[str, str], ...] = ()
    open: int = 0

    def as_dict(self) -> dict[str, object]:
        return {
            "from": self.window_range.start,
            "to": self.window_range.end,
            "failed": [{"window": window, "why": why} for window, why in self.failed],
            "pending": [{"window": window, "why": why} for window, why in self.pending],
            "open": self.open,
        }

    def describe(self) -> str | None:
        """Return one line for the person who requested the range, None if nothing is wrong with it."""
        named = [*self.failed, *self.pending]
        if not named:
            return None
        listed = ", ".join(f"{window} ({why})" for window, why in named[:_MAX_NAMED])
        more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        return (
            f"{self.pipeline}: of the requested range, {pluralize(len(named), 'window')} "
            f"{'is' if len(named) == 1 else 'are'} not right: {listed}{more}; see why with "
            f"`onceover explain {self.pipeline} {named[0][0]}`"
        )


def judge_range(
    context: PipelineContext, window_range: WindowRange, confirmation: Confirmation | None = None
) -> RangeOutcome:
    """Judge a range by the states of its windows now, and by the outcome of its request if there was one.

    A window that was certified since the request is right, whatever its repair met: another one was faster.
    """
    requested_at: datetime | None = None
    outcomes: Mapping[str, tuple[str, str]] = {}
    if confirmation is not None:
        requested_at = repair_requests.read_request(context.ledger, context.name, confirmation.request_id).created_at
        outcomes = confirmation.outcomes
    failed: list[tuple[str, str]] = []
    pending: list[tuple[str, str]] = []
    still_open = 0
    for row in list_windows(context.ledger, context.name, None, window_range.start, window_range.end):
        window, state = format_moment(row["window_start"]), WindowState(row["state"])
        outcome, reason = outcomes.get(window, ("", ""))
        is_certified = state is WindowState.CERTIFIED
        if outcome == "confirmed" or (is_certified and (requested_at is None or row["certified_at"] > requested_at)):
            continue
        if outcome in ("failed", "blocked", "revoked"):
            failed.append((window, f"{outcome}: {reason}" if reason else outcome))
        elif outcome == "cancelled":
            failed.append((window, reason))
        elif outcome == "left":
            pending.append((window, reason))
        elif state in (WindowState.BLOCKED, WindowState.DAMAGED):
            failed.append((window, _describe(state, row)))
        elif state is WindowState.OPEN:
            still_open += 1
        elif not is_certified and state is not WindowState.EXPIRED:
            pending.append((window, _describe(state, row)))
    return RangeOutcome(context.name, window_range, tuple(failed), tuple(pending), still_open)


def _describe(state: WindowState, row: Mapping[str, Any]) -> str:
    why = row["blocked_why"] or ", ".join(row["findings"])
    return f"{state}: {why}" if why else str(state)
