"""Exploration: all states of a small world in full, breadth first so that each trace is a shortest one; and walks."""

from __future__ import annotations

import gc
import random
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

FAIRNESS = 0.7
"""How often a walk takes what is no fault: else the faults are used up before anything has landed."""

S = TypeVar("S")


class HasEvent(Protocol):
    """An action that says what happened."""

    @property
    def did(self) -> object: ...


A = TypeVar("A", bound=HasEvent)


@dataclass(frozen=True)
class World(Generic[S, A]):
    """What can happen from `start` on. `is_own_move`: without another of the `faults`, or record. `wrong` says what no
    state may be, and `is_goal` what each must be able to become by own moves."""

    start: S
    moves: Callable[[S], Iterable[tuple[A, S]]]
    faults: Collection[object]
    is_own_move: Callable[[S, A], bool]
    wrong: Callable[[S], str | None]
    is_goal: Callable[[S], bool]


@dataclass(frozen=True, slots=True)
class Wrong(Generic[S, A]):
    """A state that may not be, or one from which no goal can be reached, and what led there."""

    message: str
    trace: tuple[tuple[A, S], ...]

    def __str__(self) -> str:
        return f"{self.message}\n  " + "\n  ".join(str(action) for action, _ in self.trace)


@dataclass(frozen=True, slots=True)
class Exploration(Generic[S, A]):
    """`stuck` counts the states without a way out, and `no_way_out` is one of the nearest. `endless` is one of the last
    states, if there were more than allowed."""

    states: int
    goals: int
    violation: Wrong[S, A] | None = None
    stuck: int = 0
    no_way_out: Wrong[S, A] | None = None
    endless: Wrong[S, A] | None = None

    @property
    def shown(self) -> Wrong[S, A] | None:
        """What is wrong, and the way there."""
        return self.violation or self.no_way_out or self.endless

    def __str__(self) -> str:
        return f"{self.states} states, {self.goals} goals, {self.stuck} stuck; {self.shown or ''}"


@dataclass(slots=True)
class _Graph(Generic[S]):
    """The states in the order of their discovery, the first way to each, and all own moves."""

    states: list[S]
    parents: array[int] = field(default_factory=lambda: array("i", [-1]))
    sources: array[int] = field(default_factory=lambda: array("i"))
    targets: array[int] = field(default_factory=lambda: array("i"))


def explore(world: World[S, A], most: int | None = None) -> Exploration[S, A]:
    """Visit every state until one is wrong, or there are more than `most`; then ask which of them cannot reach a
    goal."""
    graph = _Graph([world.start])
    goals: list[int] = []
    gc.disable()  # it would walk through all states again and again, and there are no cycles to be found
    try:
        for at, state in enumerate(_visited(world, graph)):
            if message := world.wrong(state):
                return Exploration(len(graph.states), len(goals), Wrong(message, _trace(world, graph, at)))
            if most is not None and len(graph.states) > most:
                endless = Wrong(f"more than {most} states", _trace(world, graph, at))
                return Exploration(len(graph.states), len(goals), endless=endless)
            if world.is_goal(state):
                goals.append(at)
        lost = _unable(graph, goals)
    finally:
        gc.enable()
    no_way_out = Wrong("no goal can be reached", _trace(world, graph, lost[0])) if lost else None
    return Exploration(len(graph.states), len(goals), stuck=len(lost), no_way_out=no_way_out)


def _visited(world: World[S, A], graph: _Graph[S]) -> Iterator[S]:
    numbers = {graph.states[0]: 0}
    for at, state in enumerate(graph.states):  # which grows
        yield state
        for action, after in world.moves(state):
            number = numbers.setdefault(after, len(graph.states))
            if number == len(graph.states):
                graph.states.append(after)
                graph.parents.append(at)
            if world.is_own_move(state, action):
                graph.sources.append(at)
                graph.targets.append(number)


def _unable(graph: _Graph[S], goals: list[int]) -> list[int]:
    """Return the states from which no goal can be reached by own moves, by going backwards from the goals."""
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


def _trace(world: World[S, A], graph: _Graph[S], at: int) -> tuple[tuple[A, S], ...]:
    """Find the moves again that led to each state on the way."""
    way = [at]
    while graph.parents[way[-1]] >= 0:
        way.append(graph.parents[way[-1]])
    way.reverse()
    taken = []
    for before, after in pairwise(way):
        wanted = graph.states[after]
        taken.append(next(move for move in world.moves(graph.states[before]) if move[1] == wanted))
    return tuple(taken)


def walk(world: World[S, A], seed: int, most: int) -> Iterator[tuple[A, S]]:
    """Walk at random until nothing can happen or `most` is reached; yield each action with the state after it."""
    chance, state = random.Random(seed), world.start
    for _ in range(most):
        choices = list(world.moves(state))
        if not choices:
            return
        # By kind first: of the many ways to tear an append each would else be as likely as all of repair.
        kinds = sorted({str(action.did) for action, _ in choices})
        fair = [kind for kind in kinds if kind not in world.faults]
        kind = chance.choice(fair if fair and chance.random() < FAIRNESS else kinds)
        action, state = chance.choice([move for move in choices if str(move[0].did) == kind])
        yield action, state


def walked(world: World[S, A], seeds: Iterable[int], most: int) -> Wrong[S, A] | None:
    """Return the first wrong state on these walks, with all that happened before it."""
    for seed in seeds:
        trace: list[tuple[A, S]] = []
        for action, state in walk(world, seed, most):
            trace.append((action, state))
            if message := world.wrong(state):
                return Wrong(f"seed {seed}: {message}", tuple(trace))
    return None
