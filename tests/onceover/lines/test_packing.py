"""Windows are packed into tasks of about the same bytes, each window in one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onceover.lines.packing import OPENING, TASK_BYTES, pack


@given(st.lists(st.integers(0, 300), max_size=40), st.integers(1, 8), st.integers(1, 200))
def test_each_window_is_in_one_task_and_tasks_are_even(sizes: list[int], cores: int, most: int) -> None:
    tasks = pack(sizes, cores, most, opening=1)
    assert sorted(place for task in tasks for place in task) == list(range(len(sizes)))
    assert all(task == sorted(task) for task in tasks)
    loads = [sum(sizes[place] + 1 for place in task) for task in tasks]
    assert loads == sorted(loads, reverse=True)
    assert all(loads), "no task is empty"
    assert len(tasks) >= min(len(sizes), cores)
    if sizes:
        assert max(loads) - min(loads) <= max(sizes) + 1
        assert max(loads) <= max(most, max(sizes) + 1) + max(sizes) + 1


def test_few_windows_are_a_task_each_and_many_share_one() -> None:
    assert pack([], 4) == []
    assert pack([5], 4) == [[0]]
    assert pack([2 * TASK_BYTES, 1, 1], 1) == [[0], [1], [2]]
    assert len(pack([TASK_BYTES // 4] * 400, 1)) == 100 * (TASK_BYTES // 4 + OPENING) // (TASK_BYTES // 4) + 1


def test_each_core_has_as_many_tasks() -> None:
    assert [len(pack([TASK_BYTES // 8] * count, 4)) for count in (3, 30, 40, 70)] == [3, 4, 8, 12]


def test_many_empty_files_are_spread_over_tasks() -> None:
    tasks = pack([0] * 10_000, 2)
    assert {len(task) for task in tasks} == {500}
    assert len(tasks) == 10_000 * OPENING // TASK_BYTES + 1
