"""Which windows of a requested range are right: by their states, and by what became of the request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from onceover.context import PipelineContext
from onceover.ledger import repair_requests
from onceover.model.window import WindowRange, format_moment
from onceover.repair import range_outcome
from onceover.repair.confirmation import Confirmation
from onceover.repair.range_outcome import RangeOutcome, judge_range

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WINDOW = format_moment(NOON)
HOUR = WindowRange(NOON, NOON + timedelta(hours=1))
BEFORE, AFTER = NOON + timedelta(days=1), NOON + timedelta(days=3)
REQUESTED = NOON + timedelta(days=2)
CONTEXT = cast(PipelineContext, SimpleNamespace(name="things", ledger=None))


def confirmation(outcome: str) -> Confirmation | None:
    if outcome == "no request":
        return None
    rows: dict[str, Any] = dict.fromkeys(("confirmed", "revoked", "failed", "newly_blocked", "unneeded", "left"), ())
    if outcome:
        rows[outcome] = (WINDOW,) if outcome == "confirmed" else ((WINDOW, "why"),)
    return Confirmation("things", 7, duplicates=0, lines_read=0, **rows)


def judge(monkeypatch: pytest.MonkeyPatch, outcome: str, **changed: Any) -> RangeOutcome:
    row: Mapping[str, object] = {
        "window_start": NOON, "state": "certified", "certified_at": BEFORE, "blocked_why": None, "findings": [],
        **changed,
    }  # fmt: skip
    monkeypatch.setattr(range_outcome, "list_windows", lambda *_: [row])
    request = SimpleNamespace(created_at=REQUESTED)
    monkeypatch.setattr(repair_requests, "read_request", lambda *_: request)
    return judge_range(CONTEXT, HOUR, confirmation(outcome))


@pytest.mark.parametrize(
    ("outcome", "row"),
    [
        ("no request", {}),
        ("", {}),
        ("confirmed", {}),
        ("confirmed", {"state": "closed"}),
        ("unneeded", {"certified_at": AFTER}),
        ("failed", {"certified_at": AFTER}),
        ("left", {"certified_at": AFTER}),
        ("no request", {"state": "expired"}),
    ],
)
def test_window_that_is_confirmed_or_needed_nothing_is_right(
    monkeypatch: pytest.MonkeyPatch, outcome: str, row: dict[str, Any]
) -> None:
    assert judge(monkeypatch, outcome, **row).describe() is None


@pytest.mark.parametrize(
    ("outcome", "row", "why"),
    [
        ("failed", {}, "failed: why"),
        ("failed", {"state": "damaged", "findings": ["missing file"]}, "failed: why"),
        ("newly_blocked", {"state": "blocked", "blocked_why": "raw holds 1 of 2"}, "blocked: why"),
        ("revoked", {"state": "closed"}, "revoked: why"),
        ("unneeded", {"state": "blocked", "blocked_why": "restored"}, "blocked: restored"),
        ("no request", {"state": "damaged", "findings": ["corrupt line", "missing file"]},
         "damaged: corrupt line, missing file"),
    ],
)  # fmt: skip
def test_window_that_failed_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, outcome: str, row: dict[str, Any], why: str
) -> None:
    judged = judge(monkeypatch, outcome, **row)

    assert (judged.failed, judged.pending) == (((WINDOW, why),), ())
    assert f"{WINDOW} ({why}); see why with `onceover explain things {WINDOW}`" in str(judged.describe())


@pytest.mark.parametrize(
    ("outcome", "row", "why"),
    [
        ("left", {}, "why"),
        ("left", {"state": "repairing"}, "why"),
        ("no request", {"state": "repairing", "findings": ["duplicated"]}, "repairing: duplicated"),
        ("", {"state": "closed"}, "closed"),
    ],
)
def test_window_that_another_repair_holds_is_pending(
    monkeypatch: pytest.MonkeyPatch, outcome: str, row: dict[str, Any], why: str
) -> None:
    judged = judge(monkeypatch, outcome, **row)

    assert (judged.failed, judged.pending) == ((), ((WINDOW, why),))


def test_open_window_of_a_range_is_counted_and_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = judge(monkeypatch, "no request", state="open")

    assert (judged.describe(), judged.open) == (None, 1)
