"""The groups of a repair: bounded in windows and records, and nothing left out."""

from __future__ import annotations

from operator import itemgetter

import pytest

from onceover.repair import groups as groups_module


@pytest.mark.parametrize(
    ("records", "sizes"),
    [([], []), ([1] * 7, [3, 3, 1]), ([60, 50, 50, 1], [1, 2, 1]), ([500, 1, 1], [1, 2]), ([1, 500], [1, 1])],
)
def test_groups_hold_every_window_within_both_bounds(
    records: list[int], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups_module, "MAX_WINDOWS", 3)
    windows = list(enumerate(records))
    groups = list(groups_module.group_windows(windows, itemgetter(1), most_records=100))
    assert [len(group) for group in groups] == sizes
    assert [window for group in groups for window in group] == windows
