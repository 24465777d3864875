"""A scenario of raw as a world to be explored, and seeded walks through larger ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.protocol.exploration import World
from tests.protocol.random_walk import walk_at_random
from tests.protocol.raw.events import Action
from tests.protocol.raw.model import FAULTS, is_own_move, moves
from tests.protocol.raw.right import is_goal, wrong
from tests.protocol.raw.state import Scenario, State

FAIRNESS = 0.7


def world_of(scenario: Scenario) -> World[State, Action]:
    return World(
        scenario.start(), partial(moves, scenario), is_own_move, partial(wrong, scenario), partial(is_goal, scenario)
    )


def walk(scenario: Scenario, seed: int, most: int = 100) -> Iterator[tuple[Action, State]]:
    """Walk at random until nothing can happen or `most` is reached."""
    return walk_at_random(scenario.start(), partial(moves, scenario), FAULTS, FAIRNESS, seed, most)
