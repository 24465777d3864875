"""A run's request: which windows, why, by force or dry. Everything from a form or a conf is checked here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from onceover.config.mistakes import suggest_name
from onceover.errors import UsageError
from onceover.model.reason import clean_reason
from onceover.model.window import WindowRange
from onceover.model.windowing import Windowing
from onceover_airflow.windows import NO_INTERVAL, DataInterval, parse_range

_T = TypeVar("_T")
_TOKEN = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run's request, checked. `window_range` is None only for detection over every window in the ledger. `plan`
    is the token of the plan that a person looked at, None without one."""

    window_range: WindowRange | None = None
    reason: str | None = None
    force: bool = False
    dry_run: bool = False
    plan: str | None = None

    @classmethod
    def from_run(
        cls, params: Mapping[str, Any], interval: DataInterval, *, windowing: Windowing, reason_needed: bool
    ) -> RunRequest:
        """Parse a run's params and data interval. Airflow has checked the form; a conf may still hold anything. Raises
        UsageError."""
        dry_run = read_flag(params, "dry_run")
        reason = read_reason(params)
        if reason_needed and reason is None and not dry_run:
            raise UsageError("a repair needs a reason, which is kept with it; give 'reason', or tick 'dry_run'")
        window_range = choose_range(params, windowing, interval)
        return cls(window_range, reason, read_flag(params, "force"), dry_run, _token(params))


def choose_range(params: Mapping[str, Any], windowing: Windowing, interval: DataInterval = NO_INTERVAL) -> WindowRange:
    """Return the range that the form names, else the data interval. Raise UsageError without either, and for a
    malformed one."""
    return parse_range(_text(params, "from"), _text(params, "to"), interval, windowing=windowing)


def refuse_unknown_keys(conf: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise UsageError for a key that the form does not have: with `dryrun` for `dry_run`, a run would repair."""
    names = list(known)
    for key in conf:
        if key not in names:
            raise UsageError(f"unknown key {key[:60]!r} in the conf; {suggest_name(key[:60], names)}")


def chosen_name(value: object) -> str:
    """Return a pipeline's name as it was typed. Raises UsageError for an empty choice, which never means all."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError("no pipeline was chosen; give 'pipeline', an empty choice never means all pipelines")
    return value.strip()


def require_text(params: Mapping[str, Any], name: str) -> str:
    """Return a param's text. Raises UsageError for one that is missing or empty, or is no text."""
    value = params.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{name!r} is {'missing' if value is None else 'not a text'}; give it, see the form")
    return value.strip()


def require_reason(params: Mapping[str, Any], what: str) -> str:
    """Return the reason as the ledger keeps it. Raises UsageError without one."""
    reason = read_reason(params)
    if reason is None:
        raise UsageError(f"{what} needs a reason, which is kept with it; give 'reason'")
    return reason


def read_param(params: Mapping[str, Any], name: str, kind: type[_T], remedy: str, default: _T | None = None) -> Any:
    """Return a param of that very type, or the default without it. Raises UsageError for a value of another type."""
    value = params.get(name, default)
    if value is not default and type(value) is not kind:
        raise UsageError(f"{name!r} is a {type(value).__name__}; {remedy}")
    return value


def _text(params: Mapping[str, Any], name: str) -> str | None:
    return (read_param(params, name, str, "write it like 2013-01-01T05:00Z") or "").strip() or None


def read_flag(params: Mapping[str, Any], name: str) -> bool:
    """Return a param that is true or false, false without it. Raises UsageError for any other value."""
    # "false" in a conf is a true string.
    return bool(read_param(params, name, bool, "give true or false, without quotes", default=False))


def _token(params: Mapping[str, Any]) -> str | None:
    value = params.get("plan")
    if value is None:
        return None
    if not isinstance(value, str) or not _TOKEN.fullmatch(value.strip()):
        raise UsageError("'plan' is not a token; give the 64 hex digits that the dry run showed, or leave it out")
    return value.strip()


def read_reason(params: Mapping[str, Any]) -> str | None:
    """Return the reason as the ledger keeps it, None without one. Raises UsageError for what is no sentence."""
    return clean_reason(read_param(params, "reason", str, "write a sentence") or "")
