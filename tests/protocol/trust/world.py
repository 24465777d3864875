"""A scenario of trust as a world to be explored."""

from __future__ import annotations

from functools import partial

from tests.protocol.exploration import World
from tests.protocol.trust.model import FAULTS, is_own_move, moves
from tests.protocol.trust.right import is_goal, wrong
from tests.protocol.trust.state import Action, Scenario, State


def world_of(scenario: Scenario) -> World[State, Action]:
    return World(
        scenario.start(),
        partial(moves, scenario),
        FAULTS,
        is_own_move,
        partial(wrong, scenario),
        partial(is_goal, scenario),
    )
