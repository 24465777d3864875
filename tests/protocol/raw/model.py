"""All that may follow a state, and whether it is a fault; and the world that this makes of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import takewhile

from tests.protocol.exploration import World
from tests.protocol.raw.events import Action, Event
from tests.protocol.raw.facts import may_work
from tests.protocol.raw.fault_moves import (
    driver_faults,
    file_moves,
    foreign_moves,
    kafka_moves,
    ledger_moves,
    upgrade_moves,
)
from tests.protocol.raw.ingest_moves import ingest_moves
from tests.protocol.raw.other_moves import detection_moves, person_moves
from tests.protocol.raw.release_moves import release_moves
from tests.protocol.raw.repair_moves import repair_moves
from tests.protocol.raw.retention_moves import retention_moves
from tests.protocol.raw.right import is_goal, wrong
from tests.protocol.raw.root_moves import root_moves
from tests.protocol.raw.state import Move, Scenario, State

FAULTS = frozenset(takewhile(lambda event: event is not Event.REGISTERED, Event))
"""The first group of events."""


def moves(scenario: Scenario, state: State) -> Iterator[Move]:
    yield from kafka_moves(scenario, state)
    yield from ledger_moves(scenario, state)
    yield from driver_faults(scenario, state)
    yield from foreign_moves(state)
    yield from file_moves(state)
    yield from root_moves(scenario, state)
    yield from ingest_moves(scenario, state)
    if may_work(scenario, state):
        yield from upgrade_moves(scenario, state)
        yield from retention_moves(scenario, state)
        yield from detection_moves(scenario, state)
        yield from person_moves(scenario, state)
        yield from release_moves(scenario, state)
        yield from repair_moves(scenario, state)


def is_own_move(_: State, action: Action) -> bool:
    """Whether it is what the system and persons do without another fault or record."""
    return action.did not in FAULTS


def world_of(scenario: Scenario) -> World[State, Action]:
    """Return the scenario as a world to be explored."""
    return World(
        scenario.start(),
        partial(moves, scenario),
        FAULTS,
        is_own_move,
        partial(wrong, scenario),
        partial(is_goal, scenario),
    )
