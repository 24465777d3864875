from __future__ import annotations

from dataclasses import replace

import pytest

from onceover.cli.commands.reread import choose_exit_code
from onceover.repair.confirmation import Confirmation

NOTHING = Confirmation("events", 1, (), (), (), (), (), (), 0, 0)
WHY = (("2026-03-01T12:05Z", "raw holds 3 of 5"),)


@pytest.mark.parametrize(
    ("done", "spark_code", "is_waiting", "exit_code"),
    [
        (replace(NOTHING, confirmed=("2026-03-01T12:05Z",)), 0, False, 0),
        (NOTHING, 0, False, 75),
        (replace(NOTHING, unneeded=WHY), 0, False, 75),
        (replace(NOTHING, left=WHY), 0, False, 75),
        (replace(NOTHING, failed=WHY), 0, True, 75),
        (replace(NOTHING, failed=WHY), 0, False, 1),
        (replace(NOTHING, failed=WHY), 75, False, 1),
        (NOTHING, 75, False, 75),
        (NOTHING, 1, False, 1),
        (None, 0, False, 1),
    ],
)
def test_reread_exits_zero_for_a_certified_window_only(
    done: Confirmation | None, spark_code: int, is_waiting: bool, exit_code: int
) -> None:
    assert choose_exit_code(done, spark_code, is_waiting=is_waiting) == exit_code
