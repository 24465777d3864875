"""Exploration: all states in full, breadth first so that each trace is a shortest one, or seeded walks beyond."""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from tests.protocol.random_walk import walk_at_random
from tests.protocol.trust.model import FAULTS, is_own_move, moves
from tests.protocol.trust.right import is_goal, wrong
from tests.protocol.trust.state import Action, Move, Scenario, State

Trace = tuple[Move, ...]
FAIRNESS = 0.7


@dataclass(frozen=True, slots=True)
class Wrong:
    """A certificate that is false, or a state from which no goal can be reached, and what led there."""

    message: str
    trace: Trace

    def __str__(self) -> str:
        return f"{self.message}\n  " + "\n  ".join(str(action) for action, _ in self.trace)


@dataclass(frozen=True, slots=True)
class Exploration:
    """`stuck` counts the states without a way out, and `no_way_out` is one of the nearest. `endless` is one of the last
    states, if there were more than allowed."""

    states: int
    goals: int
    violation: Wrong | None = None
    stuck: int = 0
    no_way_out: Wrong | None = None
    endless: Wrong | None = None

    @property
    def shown(self) -> Wrong | None:
        """What is wrong, and the way there."""
        return self.violation or self.no_way_out or self.endless

    def __str__(self) -> str:
        return f"{self.states} states, {self.goals} goals, {self.stuck} stuck; {self.shown or ''}"


@dataclass(slots=True)
class _Graph:
    """The states in the order of their discovery, the first way to each, and all moves that are no faults."""

    states: list[State]
    parents: array[int] = field(default_factory=lambda: array("i", [-1]))
    sources: array[int] = field(default_factory=lambda: array("i"))
    targets: array[int] = field(default_factory=lambda: array("i"))


def explore(scenario: Scenario, most: int | None = None) -> Exploration:
    """Visit every state until a certificate is false, or there are more than `most`; then ask which of them cannot
    reach a goal."""
    graph = _Graph([scenario.start()])
    goals: list[int] = []
    gc.disable()  # it would walk through all states again and again, and there are no cycles to be found
    try:
        for at, state in enumerate(_visited(scenario, graph)):
            if message := wrong(scenario, state):
                violation = Wrong(message, _trace(scenario, graph, at))
                return Exploration(len(graph.states), len(goals), violation)
            if most is not None and len(graph.states) > most:
                endless = Wrong(f"more than {most} states", _trace(scenario, graph, at))
                return Exploration(len(graph.states), len(goals), endless=endless)
            if is_goal(scenario, state):
                goals.append(at)
        lost = _unable(graph, goals)
    finally:
        gc.enable()
    no_way_out = Wrong("no goal can be reached", _trace(scenario, graph, lost[0])) if lost else None
    return Exploration(len(graph.states), len(goals), stuck=len(lost), no_way_out=no_way_out)


def _visited(scenario: Scenario, graph: _Graph) -> Iterator[State]:
    numbers = {graph.states[0]: 0}
    for at, state in enumerate(graph.states):  # which grows
        yield state
        for action, after in moves(scenario, state):
            number = numbers.setdefault(after, len(graph.states))
            if number == len(graph.states):
                graph.states.append(after)
                graph.parents.append(at)
            if is_own_move(state, action):
                graph.sources.append(at)
                graph.targets.append(number)


def _unable(graph: _Graph, goals: list[int]) -> list[int]:
    """Return the states from which no goal can be reached without a fault, by going backwards from the goals."""
    count = len(graph.states)
    first = array("i", bytes(4 * (count + 1)))  # of the moves that lead to each state
    for target in graph.targets:
        first[target + 1] += 1
    for at in range(count):
        first[at + 1] += first[at]
    place, leading = array("i", first), array("i", bytes(4 * len(graph.sources)))
    for source, target in zip(graph.sources, graph.targets, strict=True):
        leading[place[target]] = source
        place[target] += 1
    able, pending = bytearray(count), list(goals)
    for goal in goals:
        able[goal] = 1
    while pending:
        at = pending.pop()
        for source in leading[first[at] : first[at + 1]]:
            if not able[source]:
                able[source] = 1
                pending.append(source)
    return [at for at in range(count) if not able[at]]


def _trace(scenario: Scenario, graph: _Graph, at: int) -> Trace:
    """Find the moves again that led to each state on the way."""
    way = [at]
    while graph.parents[way[-1]] >= 0:
        way.append(graph.parents[way[-1]])
    way.reverse()
    taken = []
    for before, after in pairwise(way):
        wanted = graph.states[after]
        taken.append(next(move for move in moves(scenario, graph.states[before]) if move[1] == wanted))
    return tuple(taken)


def walk(scenario: Scenario, seed: int, most: int = 80) -> Iterator[tuple[Action, State]]:
    """Walk at random until nothing can happen or `most` is reached."""
    return walk_at_random(scenario.start(), partial(moves, scenario), FAULTS, FAIRNESS, seed, most)


def walked(scenario: Scenario, seeds: range) -> Wrong | None:
    """Return the first false certificate on these walks, with all that happened before it."""
    for seed in seeds:
        trace: list[Move] = []
        for action, state in walk(scenario, seed):
            trace.append((action, state))
            if message := wrong(scenario, state):
                return Wrong(f"seed {seed}: {message}", tuple(trace))
    return None
