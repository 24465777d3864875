"""Exploration: all states in full, breadth first so that each trace is a shortest one, or seeded walks beyond."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tests.protocol.canonical import canonical
from tests.protocol.invariants import ALL, Invariant
from tests.protocol.model import moves
from tests.protocol.random_walk import walk_at_random
from tests.protocol.settlement import Settled
from tests.protocol.state import Action, Event, Scenario, State


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that a state breaks, how, and the actions that lead there."""

    invariant: Invariant
    message: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.invariant.__name__}: {self.message}\n  " + "\n  ".join(self.trace)


@dataclass(frozen=True, slots=True)
class Exploration:
    """The number of states that were seen, whether they are all, and the first violation."""

    states: int
    is_complete: bool
    violation: Violation | None


Parents = dict[State, tuple[State, Action] | None]


def explore(scenario: Scenario, invariants: Sequence[Invariant] = ALL) -> Exploration:
    """Visit every reachable state until an invariant breaks."""
    memory: dict[State, Settled] = {}
    parents: Parents = {}
    for state in _reached(scenario, parents):
        for invariant in invariants:
            if message := invariant(scenario, state, memory):
                trace = tuple(str(action) for action, _ in _path(parents, state))
                return Exploration(len(parents), False, Violation(invariant, message, trace))
    return Exploration(len(parents), True, None)


def shortest(scenario: Scenario, goal: Callable[[State], bool]) -> list[tuple[Action, State]]:
    """Find the fewest actions that lead to such a state, in states that remember everything. Raises LookupError."""
    parents: Parents = {}
    for state in _reached(scenario, parents):
        if goal(state):
            taken: list[tuple[Action, State]] = []
            now = scenario.start()
            for _, following in _path(parents, state):
                steps = _to(scenario, now, following)
                taken += steps
                now = steps[-1][1]
            return taken
    raise LookupError("no state like that can be reached")


def _reached(scenario: Scenario, parents: Parents) -> Iterator[State]:
    """Yield all states, nearest first; `parents` receives the action that led to each."""
    start = canonical(scenario, scenario.start())
    parents[start] = None
    queue = deque([start])
    gc.disable()  # it would walk through all states again and again, and there are no cycles to be found
    try:
        while queue:
            state = queue.popleft()
            yield state
            for action, after in moves(scenario, state):
                reached = canonical(scenario, after)
                if reached not in parents:
                    parents[reached] = (state, action)
                    queue.append(reached)
    finally:
        gc.enable()


def _path(parents: Parents, state: State) -> list[tuple[Action, State]]:
    """Return the actions that led to a state, each with its resulting state."""
    taken: list[tuple[Action, State]] = []
    while step := parents[state]:
        before, action = step
        taken.append((action, state))
        state = before
    return taken[::-1]


def _to(scenario: Scenario, now: State, following: State) -> list[tuple[Action, State]]:
    """Return the next action, after those that change nothing observable."""
    choices = [(action, after, canonical(scenario, after)) for action, after in moves(scenario, now)]
    for action, after, reached in choices:
        if reached == following:
            return [(action, after)]
    here = canonical(scenario, now)
    for action, after, reached in choices:
        if reached == here and after != now:
            return [(action, after), *_to(scenario, after, following)]
    raise LookupError("no action leads on")


FAIRNESS = 0.8
MISFORTUNES = frozenset(
    {
        Event.CRASHED,
        Event.ATTEMPT_FAILED,
        Event.TORN_CRASHED,
        Event.TORN_FAILED,
        Event.TORN_RETRIED,
        Event.TAKEN_OVER,
        Event.STORE_MOVED,
        Event.TRY_FAILED,
    }
)


def walk(scenario: Scenario, seed: int, most: int = 200) -> Iterator[tuple[Action, State]]:
    """Walk at random until nothing can happen or `most` is reached."""
    return walk_at_random(scenario.start(), partial(moves, scenario), MISFORTUNES, FAIRNESS, seed, most)


def walked(scenario: Scenario, seeds: Sequence[int], invariants: Sequence[Invariant] = ALL) -> Violation | None:
    """Return the first violation on these walks, with all actions before it."""
    memory: dict[State, Settled] = {}
    for seed in seeds:
        trace: list[str] = []
        for action, state in walk(scenario, seed):
            trace.append(str(action))
            for invariant in invariants:
                if message := invariant(scenario, state, memory):
                    return Violation(invariant, message, tuple(trace))
    return None
