"""The end of a state once faults cease: one driver, a scheduled detection and repairs, in turn."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol import facts
from tests.protocol.canonical import canonical
from tests.protocol.ingest_moves import driver_moves, taken_over
from tests.protocol.repair_moves import certified, claim, freeze, publish, refill_moves
from tests.protocol.state import Left, Scenario, State, put

MOST_MOVES = 60
MOST_REPAIRS = 2  # of one window; a second one only if a late record came in between


class Settled(NamedTuple):
    """The final state, the number of repairs of each window, and whether nothing was left to do."""

    state: State
    repairs: tuple[int, ...]
    at_rest: bool


def settle(scenario: Scenario, state: State, memory: dict[State, Settled], *, by_name: bool = False) -> Settled:
    """Run on without faults. Blocked windows are left alone unless their repair is requested by name."""
    return _run(scenario, _without_faults(scenario, state, by_name), memory)


def _without_faults(scenario: Scenario, state: State, by_name: bool) -> State:
    """Fenced and crashed drivers, and repairs that were killed, do nothing more; a driver is started if none lives."""
    state = state._replace(
        left=Left(), repairs=(), looks=(), drivers=tuple(d for d in state.drivers if d.epoch == state.epoch)
    )
    if by_name:
        state = state._replace(tries=(0,) * scenario.windows, blocked=(False,) * scenario.windows)
    if not state.drivers:
        state = taken_over(scenario, state)[1]
    return canonical(scenario, state)


def _run(scenario: Scenario, state: State, memory: dict[State, Settled]) -> Settled:
    """Each state on the way is remembered with its end and the repairs from there."""
    way: list[tuple[State, int | None]] = []  # each state, and the window whose repair followed
    while state not in memory:
        after, window = _next(scenario, state)
        if after is None or len(way) == MOST_MOVES:
            memory[state] = Settled(state, (0,) * scenario.windows, after is None)
            break
        way.append((state, window))
        state = after
    settled = memory[state]
    for before, window in reversed(way):
        if window is not None:
            repairs = settled.repairs
            settled = settled._replace(repairs=put(repairs, window, repairs[window] + 1))
        memory[before] = settled
    return settled


def _next(scenario: Scenario, state: State) -> tuple[State | None, int | None]:
    """Return the next state, None at rest, and the repaired window, if any."""
    after = _driven(scenario, state) or _detected(scenario, state)
    if after is None:
        window = _failed(scenario, state)
        if window is not None:
            return repaired(scenario, state, window), window
    return after, None


def _driven(scenario: Scenario, state: State) -> State | None:
    """Run the driver as far as possible, with the largest batches that it may take."""
    *_, last = [(None, None), *driver_moves(scenario, state, 0)]
    return last[1]


def _detected(scenario: Scenario, state: State) -> State | None:
    for _, after in refill_moves(scenario, state):
        return after
    for window in _judged(scenario, state):
        if facts.is_clean(scenario, state, window):
            return certified(state, window, facts.certificate_from_ledger(scenario, state, window))
    return None


def _failed(scenario: Scenario, state: State) -> int | None:
    """Return the first window that needs a repair; a batch in flight counts only after its end."""
    in_flight = any(batch.state == "begun" for batch in state.batches)
    for window in _judged(scenario, state):
        found = facts.findings(scenario, state, window)
        if not (in_flight and any(finding.kind.meaning.waits_for_batches for finding in found)):
            return window
    return None


def forced(scenario: Scenario, state: State, window: int) -> State:
    """A person has the window repaired by force, if it is not clean: a driver that was taken over may have appended
    to its file after it was certified."""
    return state if facts.is_clean(scenario, state, window) else repaired(scenario, state, window)


def repaired(scenario: Scenario, state: State, window: int) -> State:
    """Run one repair from claim to publication, without interruption."""
    _, state = freeze(claim(scenario, state, window)[1], 0)
    while state.repairs:
        (_, state), *_ = publish(scenario, state, 0)
    return state


def _judged(scenario: Scenario, state: State) -> list[int]:
    shut = facts.closed(scenario, state)
    return [w for w, c in enumerate(shut) if c and not state.blocked[w] and not facts.is_certified(state, w)]
