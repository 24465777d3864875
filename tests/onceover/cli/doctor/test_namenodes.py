"""What doctor says of several NameNodes, by their states."""

from __future__ import annotations

import pytest

from onceover.cli.doctor.namenodes import check_failover, find_active

A, B = "http://a:9870", "http://b:9870"


@pytest.mark.parametrize(
    ("states", "active", "outcomes"),
    [
        ({A: "active"}, A, []),
        ({A: "away"}, A, []),
        ({A: "away", B: "away"}, A, []),
        ({A: "standby", B: "active"}, B, [("fine", f"{B} is the active NameNode; {A} would take over")]),
        ({A: "active", B: "away"}, A,
         [("wrong", f"{A} is the active NameNode, and none would take over: {B} is away; start it")]),
    ],
)  # fmt: skip
def test_active_namenode_needs_one_that_would_take_over(
    states: dict[str, str], active: str, outcomes: list[tuple[str, str]]
) -> None:
    assert find_active(states) == active
    assert [(each.state, each.what) for each in check_failover(states)] == outcomes
