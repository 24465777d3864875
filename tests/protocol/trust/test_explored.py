"""Every state of several small worlds, and seeded walks through a larger one: no certificate is false."""

from __future__ import annotations

from dataclasses import replace

import pytest
from _pytest.mark import ParameterSet
from tests.protocol.exploration import explore, walked
from tests.protocol.trust.rules import BEFORE
from tests.protocol.trust.scenarios import ALL, QUICK, WALKED
from tests.protocol.trust.world import world_of

MOST = 80  # actions of a walk
SEEDS = (
    range(500),
    pytest.param(range(500, 20_000), marks=(pytest.mark.rare, pytest.mark.largest)),
)


def marked(name: str) -> str | ParameterSet:
    return name if name in QUICK else pytest.param(name, marks=(pytest.mark.rare, pytest.mark.largest))


@pytest.mark.parametrize("name", [marked(name) for name in ALL])
def test_certificates_are_right_and_no_state_is_stuck(name: str) -> None:
    scenario, states = ALL[name]
    found = explore(world_of(scenario))
    assert found.violation is None, str(found.violation)
    assert found.no_way_out is None, str(found)
    assert found.states == states


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@pytest.mark.parametrize("name", WALKED)
def test_walks_with_more_faults_meet_no_false_certificate(name: str, seeds: range) -> None:
    violation = walked(world_of(WALKED[name]), seeds, MOST)
    assert violation is None, str(violation)


def test_rules_before_issue_16_end_in_a_false_certificate() -> None:
    found = explore(world_of(replace(ALL["crash-in"].scenario, rules=BEFORE)))
    assert found.violation is not None
    assert "0 is stated as lost, and held" in found.violation.message
