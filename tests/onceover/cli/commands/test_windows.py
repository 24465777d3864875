"""The list of windows for a person."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from onceover.cli.commands.windows import describe
from onceover.ledger.windows import WindowState

ROW = {
    "window_start": datetime(2026, 3, 1, 12, tzinfo=UTC), "state": "certified", "records": 7, "basis": "raw",
    "verdict": "exact", "tries": 0, "log_until": None, "blocked_why": None, "findings": [], "taken_by": None,
    "ticket": None,
}  # fmt: skip


def test_sum_counts_the_windows_that_are_not_printed(show: Callable[..., str]) -> None:
    printed = show(*describe([ROW], {WindowState.CERTIFIED: 105_119, WindowState.OPEN: 1})).splitlines()

    assert printed[1].startswith("2026-03-01T12:00Z  certified")
    assert printed[2:] == [
        "these are the last 1; --from and --to choose others, --json lists all",
        "105,120 windows: 105,119 certified, 1 open",
    ]


def test_sum_of_a_whole_list_needs_no_hint(show: Callable[..., str]) -> None:
    assert "last" not in show(*describe([ROW]), *describe([ROW], {WindowState.CERTIFIED: 1}))


def test_list_shows_who_has_taken_a_window(show: Callable[..., str]) -> None:
    held = {**ROW, "state": "failed", "taken_by": "kim", "ticket": "\x1b[2J[bold]INC-1"}

    headings, taken, free = show(*describe([held, ROW])).splitlines()[:3]
    at = headings.index("taken by")
    assert taken[at:].startswith("kim, ")
    assert "[2J[bold]INC-1" in taken
    assert "\x1b" not in taken
    assert free[at:].split() == ["-", "-"], "neither a holder nor a finding"
