"""The protocol as an explicit-state model: every action that may follow a state, with the state it leads to."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.facts import progress
from tests.protocol.ingest_moves import driver_moves, taken_over
from tests.protocol.repair_moves import detection_moves, repair_moves
from tests.protocol.state import Action, Event, Move, Scenario, State, put


def moves(scenario: Scenario, state: State) -> Iterator[Move]:
    """Ingest, detection and repair are independent processes: any of them may be the next to do something."""
    if state.left.takeovers:
        yield taken_over(scenario, state._replace(left=state.left._replace(takeovers=state.left.takeovers - 1)))
    if state.left.moves:
        yield from _store_moved(scenario, state)
    for at in range(len(state.drivers)):
        yield from driver_moves(scenario, state, at)
    yield from detection_moves(scenario, state)
    yield from repair_moves(scenario, state)


def _store_moved(scenario: Scenario, state: State) -> Iterator[Move]:
    """An operator sets the stored offset of one Kafka partition ahead of the last read record."""
    spent = state._replace(left=state.left._replace(moves=state.left.moves - 1))
    accounted = progress(scenario, state).accounted
    for kafka_partition, log in enumerate(scenario.logs):
        first = scenario.first_of[kafka_partition]
        for offset in range(state.stored[kafka_partition] + 1, len(log) + 1):
            passed = set(range(first, first + offset)) - accounted
            yield (
                Action(Event.STORE_MOVED, kafka_partition, f"to {offset}"),
                spent._replace(stored=put(state.stored, kafka_partition, offset), skipped=state.skipped | passed),
            )
