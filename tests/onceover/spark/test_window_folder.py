"""Outcomes of a window's parts become its summary, its failure, or neither."""

from __future__ import annotations

from tests.plain_pieces import NO_PIECES

from onceover.lines.accounts import Accounts
from onceover.lines.fold import fold
from onceover.lines.folded_window import Shuffled
from onceover.lines.read import read
from onceover.lines.summary import WindowSummary
from onceover.lines.window_lines import hold_lines
from onceover.spark.fold_tasks import WindowOutcome
from onceover.spark.window_folder import join_parts


def _summarize(text: bytes) -> WindowSummary:
    return fold(hold_lines(read(memoryview(text))), Accounts(0, 1, NO_PIECES, (b"V1",), 0)).summary


def test_parts_add_up_unless_one_has_no_summary() -> None:
    one, two = _summarize(b"torn"), _summarize(b"a\nb\n")
    summaries, failures = join_parts(
        {
            1: [WindowOutcome(one), WindowOutcome(two, part=1)],
            2: [WindowOutcome(one), WindowOutcome(shuffled=Shuffled.NEEDS_VALUE, part=1)],
            3: [WindowOutcome(shuffled=Shuffled.NEEDS_VALUE), WindowOutcome(error="/3.log is missing", part=1)],
        }
    )
    assert {window: (each.lines, each.corrupt) for window, each in summaries.items()} == {1: (3, 3)}
    assert failures == {3: "/3.log is missing"}, "2 is read again, in another way"
