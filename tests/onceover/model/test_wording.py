from __future__ import annotations

from onceover.model.wording import format_list


def test_long_list_is_cut() -> None:
    assert format_list(range(20), "landing") == "landings 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"
    assert format_list([3], "landing") == "landing 3"
