"""Every state of several small worlds, and seeded walks through a larger one: no invariant breaks."""

from __future__ import annotations

import pytest
from tests.protocol.explore import explore, walked
from tests.protocol.scenarios import EXPLORED, WALKED


@pytest.mark.parametrize("name", EXPLORED)
def test_no_state_that_can_be_reached_breaks_an_invariant(name: str) -> None:
    found = explore(EXPLORED[name])
    assert found.violation is None, str(found.violation)
    assert found.is_complete
    assert found.states > 500, "so few states that little can have happened"


def test_no_random_walk_through_more_faults_breaks_an_invariant() -> None:
    violation = walked(WALKED, range(300))
    assert violation is None, str(violation)
