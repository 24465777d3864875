from __future__ import annotations

from datetime import UTC, datetime

import pytest

from onceover.explain.next_steps import list_next_steps
from onceover.model.finding_kinds import Kind
from onceover.model.remedies import REREAD, RESTORE, TAKE_OUT
from onceover.model.repair_failure import RepairFailure
from onceover.model.windowing import Windowing

WINDOW = Windowing(60).window_at(datetime(2013, 1, 1, 5, tzinfo=UTC))
REPAIR = 'onceover repair things --from 2013-01-01T05:00Z --to 2013-01-01T06:00Z --reason "..."'


def commands(state: str, *kinds: Kind, changing: bool = False) -> list[str]:
    return [step.command for step in list_next_steps("things", WINDOW, state, kinds, changing) if step.command]


@pytest.mark.parametrize("state", ["open", "closed", "failed", "repairing", "blocked", "certified"])
def test_next_step_is_never_empty(state: str) -> None:
    assert list_next_steps("things", WINDOW, state, [])


def test_rows_without_raw_are_compared_by_a_reread() -> None:
    (step,) = list_next_steps("things", WINDOW, "expired", [], rows_without_raw=True)
    assert step.command == 'onceover reread things 2013-01-01T05:00Z --reason "..."'
    assert commands("expired", Kind.UNACCOUNTED_BYTES) == []


def test_failed_window_is_looked_at_and_then_repaired() -> None:
    assert commands("failed", Kind.DUPLICATED) == [REPAIR.replace('--reason "..."', "--dry-run"), REPAIR]


def test_blocked_window_is_repaired_by_hand_only() -> None:
    assert commands("blocked") == [REPAIR]


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        ([RepairFailure.LOST_LINE], True),
        ([RepairFailure.FEWER_RECORDS, RepairFailure.UNREADABLE_FILE], True),
        ([RepairFailure.STRAY_RECORD], False),
        ([], False),
    ],
)
def test_blocked_window_that_lacks_lines_is_read_again(failed: list[RepairFailure], expected: bool) -> None:
    steps = list_next_steps("things", WINDOW, "blocked", [], failed=failed)
    named = [step.command for step in steps if step.command]
    assert ('onceover reread things 2013-01-01T05:00Z --reason "..."' in named) is expected
    assert ("onceover retention things --adopt-missing --dry-run" in named) is expected
    assert named[-1] == REPAIR


def test_window_is_read_again_where_a_repair_could_not() -> None:
    failed = [RepairFailure.UNREADABLE_FILE]
    named = [s.command for s in list_next_steps("things", WINDOW, "failed", [Kind.DUPLICATED], failed=failed)]
    assert 'onceover reread things 2013-01-01T05:00Z --reason "..."' in named
    assert named[-1] == REPAIR


def test_raw_losses_are_restored_before_a_repair() -> None:
    steps = list_next_steps("things", WINDOW, "failed", [Kind.MISSING_FILE])
    assert "bring the window file back first" in steps[0].text


def test_lost_text_is_taken_over_only_beside_a_compacted_file() -> None:
    command = "onceover compact things"
    declare = "onceover retention things --adopt-missing --dry-run"
    for found, expected in ((True, True), (False, False)):
        steps = list_next_steps("things", WINDOW, "failed", [Kind.MISSING_FILE], has_unknown_compacted=found)
        named = [step.command for step in steps]
        assert (command in named, declare in named) == (expected, True)


@pytest.mark.parametrize("more", [(), (RepairFailure.LOST_LINE,)])
@pytest.mark.parametrize("two", [RepairFailure.TWO_CONTENTS, RepairFailure.TWO_WINDOWS])
def test_wrong_one_of_two_contents_is_taken_out(two: RepairFailure, more: tuple[RepairFailure, ...]) -> None:
    failed, damage = [two, *more], [Kind.FAILED_PROOF]
    steps = list_next_steps("things", WINDOW, "failed", damage, failed=failed)
    assert steps[:-2] == [TAKE_OUT]
    assert steps[-2].text.startswith("After that, Airflow's DAG")
    assert list_next_steps("things", WINDOW, "blocked", damage, failed=failed)[1:-1] == [TAKE_OUT]
    mixed = list_next_steps("things", WINDOW, "failed", [*damage, Kind.CORRUPT_LINE], failed=failed)
    assert [step.text for step in mixed[:-2]] == [step.text for step in (TAKE_OUT, RESTORE, REREAD)]


def test_open_window_without_its_file_is_read_again() -> None:
    assert commands("open", Kind.MISSING_FILE) == ['onceover reread things 2013-01-01T05:00Z --reason "..."']


@pytest.mark.parametrize("state", ["open", "repairing", "certified"])
def test_window_that_needs_no_repair_suggests_none(state: str) -> None:
    assert REPAIR not in commands(state, Kind.LATE)


def test_window_in_which_a_batch_is_landing_is_left_alone() -> None:
    assert commands("closed", changing=True) == []


def test_certified_window_beside_a_hole_needs_nothing_more() -> None:
    assert list_next_steps("things", WINDOW, "certified", [])[-1].text == "Nothing: its certificate is valid."
    assert list_next_steps("things", WINDOW, "certified", [Kind.HOLE])[-1].text.startswith("For what was read of this")


def test_repair_comes_after_what_it_needs() -> None:
    (look,) = [step for step in list_next_steps("things", WINDOW, "failed", [Kind.CORRUPT_LINE]) if "DAG" in step.text]
    assert look.text.startswith("After that, Airflow's DAG")
