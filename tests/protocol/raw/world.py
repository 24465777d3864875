"""A scenario of raw as a world to be explored."""

from __future__ import annotations

from functools import partial

from tests.protocol.exploration import World
from tests.protocol.raw.events import Action
from tests.protocol.raw.model import FAULTS, is_own_move, moves
from tests.protocol.raw.right import is_goal, wrong
from tests.protocol.raw.state import Scenario, State


def world_of(scenario: Scenario) -> World[State, Action]:
    return World(
        scenario.start(),
        partial(moves, scenario),
        FAULTS,
        is_own_move,
        partial(wrong, scenario),
        partial(is_goal, scenario),
    )
