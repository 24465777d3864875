"""Every state of several small worlds, and seeded walks through a larger one: no invariant breaks."""

from __future__ import annotations

import pytest
from tests.protocol.explore import explore, walked
from tests.protocol.scenarios import EXPLORED, WALKED


@pytest.mark.parametrize("name", EXPLORED)
def test_reachable_states_break_no_invariant(name: str) -> None:
    found = explore(EXPLORED[name])
    assert found.violation is None, str(found.violation)
    assert found.is_complete
    assert found.states > 500, "so few states that little can have happened"


def test_random_walks_through_more_faults_break_no_invariant() -> None:
    violation = walked(WALKED, range(300))
    assert violation is None, str(violation)
