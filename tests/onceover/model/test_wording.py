from __future__ import annotations

import pytest

from onceover.model.wording import format_duration, format_list


def test_long_list_is_cut() -> None:
    assert format_list(range(20), "landing") == "landings 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"
    assert format_list([3], "landing") == "landing 3"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (99, "1 min 39 s"), (3600, "1 h"), (9_000, "2 h 30 min"), (93_600, "1 d 2 h"), (86_460, "1 d")],
)
def test_duration_is_in_its_largest_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
