"""Starts of windows in the rows of answers: by the clock of their zone too, if they have one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from onceover.config.zones import read_changes
from onceover.explain.local_times import add_local, format_window
from onceover.model.window import format_moment
from onceover.model.windowing import Windowing

START = datetime(2026, 10, 24, 22, tzinfo=UTC)
LOCAL = "2026-10-25T00:00+02:00 Europe/Berlin"
BERLIN = Windowing(1440, "Europe/Berlin", read_changes("Europe/Berlin"))


@pytest.mark.parametrize("start", [START, format_moment(START)])
def test_window_of_a_zone_has_both_times(start: datetime | str) -> None:
    (row,) = add_local(BERLIN, [{"window": start, "rows": 3}])
    assert row == {"window": start, "rows": 3, "local": LOCAL}
    assert format_window(row) == f"2026-10-24T22:00Z ({LOCAL})" == BERLIN.show(START)


def test_quarantine_and_windows_of_utc_stay_as_they_are() -> None:
    rows: list[Mapping[str, Any]] = [{"window": "quarantine"}, {"window": START}]
    assert add_local(Windowing(1440), rows) == rows
    assert add_local(BERLIN, rows[:1]) == rows[:1]
    assert list(map(format_window, rows)) == ["quarantine", "2026-10-24T22:00Z"]
    assert Windowing(1440).show(START) == "2026-10-24T22:00Z"
