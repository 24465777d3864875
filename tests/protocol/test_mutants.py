"""Every rule of the protocol is needed: without it, or reversed, a known invariant breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.protocol import invariants
from tests.protocol.explore import explore
from tests.protocol.invariants import Invariant
from tests.protocol.mutant import Mutant
from tests.protocol.scenarios import BLOCKED, CRASHES, HOLE, HOLES, SLOW_DETECTION
from tests.protocol.state import Left, Scenario

DETECTED_SLOWLY = replace(SLOW_DETECTION, left=Left(faults=1, takeovers=1, looks=1))

BROKEN: dict[Mutant, tuple[Scenario, Invariant]] = {
    Mutant.PUBLISH_AT_ANY_VERSION: (CRASHES, invariants.certified_is_right),
    Mutant.CERTIFY_AT_ANY_VERSION: (DETECTED_SLOWLY, invariants.certified_is_right),
    Mutant.CONTROL_ROW_APART: (CRASHES, invariants.no_wrong_window_is_judged_clean),
    Mutant.BYTES_OF_ALL_LANDINGS: (CRASHES, invariants.settles),
    Mutant.OFFSETS_FIRST: (CRASHES, invariants.nothing_lost),
    Mutant.PUBLISH_IN_TWO: (CRASHES, invariants.readers_never_see_half),
    Mutant.ALL_BYTES_COUNT: (CRASHES, invariants.certified_is_right),
    Mutant.ATTEMPTS_STAY_BEGUN: (CRASHES, invariants.settles),
    Mutant.LANDED_SUPERSEDED: (CRASHES, invariants.certified_is_right),
    Mutant.REFILL_STATES_MORE: (HOLE, invariants.nothing_lost),
    Mutant.REFILL_STAYS_WHOLE: (HOLES, invariants.settles),
    Mutant.BLOCKED_TRIED: (BLOCKED, invariants.blocked_is_left_alone_until_asked_for_by_name),
}


def test_mutants_are_all_tried() -> None:
    assert set(BROKEN) == set(Mutant)


@pytest.mark.parametrize("mutant", BROKEN, ids=lambda mutant: mutant.name.lower())
def test_mutant_breaks_its_invariant(mutant: Mutant) -> None:
    scenario, invariant = BROKEN[mutant]
    found = explore(replace(scenario, mutants=frozenset({mutant})), [invariant])
    assert found.violation is not None, f"{found.states} states without a violation"
    assert found.violation.invariant is invariant
    assert found.violation.trace
