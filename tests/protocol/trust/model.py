"""All that may follow a state, and whether it is a fault."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.trust.facts import owns_root
from tests.protocol.trust.fault_moves import driver_faults, file_moves, kafka_moves, ledger_moves, retention_moves
from tests.protocol.trust.ingest_moves import ingest_moves
from tests.protocol.trust.other_moves import detection_moves, person_moves
from tests.protocol.trust.repair_moves import repair_moves
from tests.protocol.trust.root_moves import root_moves
from tests.protocol.trust.state import Action, Event, Move, Scenario, State

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
        Event.REBUILD_KILLED,
        Event.RAW_EXPIRED,
        Event.BACK,
        Event.MOVED,
        Event.FILE_LOST,
        Event.FOREIGN_APPENDED,
    }
)


def moves(scenario: Scenario, state: State) -> Iterator[Move]:
    yield from kafka_moves(scenario, state)
    yield from ledger_moves(scenario, state)
    yield from driver_faults(state)
    yield from retention_moves(state)
    yield from file_moves(scenario, state)
    yield from root_moves(scenario, state)
    yield from ingest_moves(scenario, state)
    if state.ledger.known and owns_root(scenario, state) and not state.rebuilding:
        yield from detection_moves(scenario, state)
        yield from person_moves(scenario, state)
        yield from repair_moves(scenario, state)


def is_own_move(state: State, action: Action) -> bool:
    """Whether what the system and persons do without faults may count on it: no further record, but for those that
    a log which was cut below what is known of it has to hold again. (A person can recreate the topic instead.)"""
    return action.did not in FAULTS or (action.did is Event.PRODUCED and state.log_end < state.ledger.reach)
