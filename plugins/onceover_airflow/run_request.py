"""What a run was asked for: which windows, why, by force or dry. Everything from a form or a conf is checked here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onceover.errors import UsageError
from onceover.model.reason import clean_reason
from onceover.model.window import WindowRange
from onceover_airflow.windows import DataInterval, parse_range


@dataclass(frozen=True, slots=True)
class Asked:
    """A run's request, checked. `window_range` is None only for detection over all that the ledger knows."""

    window_range: WindowRange | None = None
    reason: str | None = None
    force: bool = False
    dry_run: bool = False

    @classmethod
    def of_run(cls, params: Mapping[str, Any], interval: DataInterval, *, minutes: int, reason_needed: bool) -> Asked:
        """From a run's params and data interval. Airflow has checked the form; a conf may still hold anything."""
        dry_run = _flag(params, "dry_run")
        reason = _reason(params)
        if reason_needed and reason is None and not dry_run:
            raise UsageError("a repair needs a reason, which is kept with it; give 'reason', or tick 'dry_run'")
        window_range = parse_range(_text(params, "from"), _text(params, "to"), interval, minutes=minutes)
        return cls(window_range, reason, _flag(params, "force"), dry_run)

    @classmethod
    def of_form(cls, params: Mapping[str, Any]) -> Asked:
        """From the params of a run that is about no windows: a reason, and whether it is a dry run."""
        return cls(reason=_reason(params), dry_run=_flag(params, "dry_run"))


def chosen_name(value: object) -> str:
    """A pipeline's name as it was typed; an empty choice is refused rather than taken for all of them."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError("no pipeline was chosen; give 'pipeline', an empty choice never means all of them")
    return value.strip()


def _text(params: Mapping[str, Any], name: str) -> str | None:
    value = params.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise UsageError(f"{name!r} is a {type(value).__name__}; write it like 2013-01-01T05:00Z")
    return value.strip() or None


def _flag(params: Mapping[str, Any], name: str) -> bool:
    value = params.get(name, False)
    if not isinstance(value, bool):  # "false" in a conf is a true string
        raise UsageError(f"{name!r} is {type(value).__name__}, not true or false")
    return value


def _reason(params: Mapping[str, Any]) -> str | None:
    value = params.get("reason")
    if value is None:
        return None
    if not isinstance(value, str):
        raise UsageError(f"'reason' is a {type(value).__name__}; write a sentence")
    return clean_reason(value)
