"""Seeded random walks over a model's moves."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol, TypeVar


class HasEvent(Protocol):
    """An action that says what happened."""

    @property
    def did(self) -> object: ...


A = TypeVar("A", bound=HasEvent)
S = TypeVar("S")


def walk_at_random(
    state: S,
    moves: Callable[[S], Iterable[tuple[A, S]]],
    faults: Collection[object],
    fairness: float,
    seed: int,
    most: int,
) -> Iterator[tuple[A, S]]:
    """Yield each action with the state after it, until nothing can happen or `most` is reached. `fairness` is how often
    the walk takes what is no fault: else the faults are used up before anything has landed."""
    chance = random.Random(seed)
    for _ in range(most):
        choices = list(moves(state))
        if not choices:
            return
        # By kind first: of the many ways to tear an append each would else be as likely as all of repair.
        kinds = sorted({str(action.did) for action, _ in choices})
        fair = [kind for kind in kinds if kind not in faults]
        kind = chance.choice(fair if fair and chance.random() < fairness else kinds)
        action, state = chance.choice([move for move in choices if str(move[0].did) == kind])
        yield action, state
