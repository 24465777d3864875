"""Every state of several small worlds, and seeded walks through larger ones: no certificate is false."""

from __future__ import annotations

import pytest
from tests.protocol.exploration import explore, walked
from tests.protocol.raw.model import world_of
from tests.protocol.raw.scenarios import ALL, LARGEST, WALKED

RARELY = (pytest.mark.rare, pytest.mark.largest)
MOST = 100  # actions of a walk
SEEDS = (
    range(300),
    pytest.param(range(300, 20_000), marks=RARELY),
)


@pytest.mark.parametrize("name", [pytest.param(name, marks=RARELY if name in LARGEST else ()) for name in ALL])
def test_certificates_are_right_and_no_state_is_stuck(name: str) -> None:
    scenario, states = ALL[name]
    found = explore(world_of(scenario))
    assert found.shown is None, str(found)
    assert found.states == states


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@pytest.mark.parametrize("name", WALKED)
def test_walks_with_more_faults_meet_no_false_certificate(name: str, seeds: range) -> None:
    found = walked(world_of(WALKED[name]), seeds, MOST)
    assert found is None, str(found)
