"""The bounds of what one scheduled detection requests."""

from __future__ import annotations

import pytest

from onceover.detection.detect import MAX_LINES_REQUESTED, count_first

HALF = MAX_LINES_REQUESTED // 2


@pytest.mark.parametrize(
    ("lines", "first"),
    [([0, 0, 0], 3), ([HALF, HALF, 1], 2), ([3 * HALF, 1], 1), ([1, 3 * HALF], 1)],
)
def test_scheduled_request_has_a_bounded_number_of_lines(lines: list[int], first: int) -> None:
    assert count_first(lines) == first
