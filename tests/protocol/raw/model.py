"""All that may follow a state, and whether it is a fault."""

from __future__ import annotations

from collections.abc import Iterator

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
from tests.protocol.raw.root_moves import root_moves
from tests.protocol.raw.state import Move, Scenario, State

FAULTS = frozenset(
    {
        Event.PRODUCED,
        Event.EXPIRED,
        Event.CUT,
        Event.LEDGER_LOST,
        Event.BACKED_UP,
        Event.RESTORED,
        Event.CRASHED,
        Event.TORN,
        Event.TAKEN_OVER,
        Event.APPENDED_LATE,
        Event.FOREIGN_APPENDED,
        Event.RAW_EXPIRED,
        Event.FILE_LOST,
        Event.RELEASE_BEGUN,
        Event.RELEASE_KILLED,
        Event.LANDINGS_DELETED,
        Event.REBUILD_KILLED,
        Event.UPGRADED,
    }
)


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
