"""Traces of the model on the real ledger: after each action both are equal."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest
from tests.protocol import facts
from tests.protocol.compare import compare
from tests.protocol.explore import shortest, walk
from tests.protocol.invariants import certified_is_right
from tests.protocol.mutant import Mutant
from tests.protocol.replay import Replay
from tests.protocol.scenarios import BLOCKED, CRASHES, HOLE, HOLES, REPLAYED
from tests.protocol.state import Action, Batch, Scenario, State

from onceover.config.endpoints import address
from onceover.ledger.database import Connection, connect
from onceover.ledger.migrate import upgrade_schema
from onceover.model.finding_kinds import Kind
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def connection(stack: Stack) -> Iterator[Connection]:
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection:
        connection.execute("SET synchronous_commit = off")  # thousands of short transactions, none of which must last
        yield connection


def replay(connection: Connection, scenario: Scenario, trace: Iterable[tuple[Action, State]]) -> None:
    replayed, before, done = Replay(connection, scenario, f"model_{uuid.uuid4().hex[:8]}"), scenario.start(), []
    for action, after in trace:
        done.append(str(action))
        try:
            replayed.follow(before, action, after)
            compare(replayed, after)
        except BaseException as error:  # a wait for an error that did not come is none that Exception catches
            error.add_note("after\n  " + "\n  ".join(done))
            raise
        before = after


def _mark(seed: int) -> tuple[pytest.MarkDecorator, ...]:
    return () if seed < 8 else (pytest.mark.rare,) if seed < 20 else (pytest.mark.rare, pytest.mark.largest)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=_mark(seed)) for seed in range(40)])
def test_random_walk_ends_alike_in_ledger_and_model(connection: Connection, seed: int) -> None:
    replay(connection, REPLAYED, walk(REPLAYED, seed, most=50))


def finds(scenario: Scenario, kind: Kind) -> Callable[[State], bool]:
    def found(state: State) -> bool:
        closed = facts.closed(scenario, state)
        return any(
            kind in {finding.kind for finding in facts.findings(scenario, state, w)} for w, c in enumerate(closed) if c
        )

    return found


def is_landed_refill(batch: Batch) -> bool:
    return batch.refill and batch.state == "landed"


REACHED: dict[str, tuple[Scenario, Callable[[State], bool]]] = {
    **{
        str(kind): (CRASHES, finds(CRASHES, kind))
        for kind in (Kind.DUPLICATED, Kind.UNACCOUNTED_BYTES, Kind.AGGREGATE_MISMATCH, Kind.LATE)
    },
    "hole": (HOLE, lambda state: bool(facts.holes(state))),
    "hole filled": (HOLE, lambda state: any(map(is_landed_refill, state.batches))),
    "refill in parts": (HOLES, lambda state: [len(b.spans) for b in state.batches if is_landed_refill(b)] == [1, 1]),
    "refill of two ranges": (HOLES, lambda state: any(len(b.spans) == 2 for b in state.batches if is_landed_refill(b))),
    "blocked": (BLOCKED, lambda state: any(state.blocked)),
    "repaired": (CRASHES, lambda state: has_frozen_torn_bytes(CRASHES, state)),
}


@pytest.mark.parametrize("name", REACHED)
def test_shortest_way_to_each_finding_is_the_ledgers_too(connection: Connection, name: str) -> None:
    scenario, goal = REACHED[name]
    replay(connection, scenario, shortest(scenario, goal))


def is_wrong(scenario: Scenario, state: State) -> bool:
    return certified_is_right(scenario, state, {}) is not None


def has_superseded_what_landed(_: Scenario, state: State) -> bool:
    return any(state.batches[landing.batch].state == "superseded" for landing in state.landings)


def has_two_begun(_: Scenario, state: State) -> bool:
    return [batch.state for batch in state.batches] == ["begun", "begun"]


def has_frozen_torn_bytes(_: Scenario, state: State) -> bool:
    return any(c and c.frozen_length > sum(c.counts) for c in state.certificates)


OTHERWISE = {
    Mutant.LANDED_SUPERSEDED: has_superseded_what_landed,
    Mutant.ATTEMPTS_STAY_BEGUN: has_two_begun,
    Mutant.BYTES_OF_ALL_LANDINGS: has_frozen_torn_bytes,
    Mutant.ALL_BYTES_COUNT: is_wrong,
    Mutant.PUBLISH_AT_ANY_VERSION: is_wrong,
}


@pytest.mark.parametrize("mutant", OTHERWISE, ids=lambda mutant: mutant.name.lower())
def test_model_that_differs_from_the_ledger_is_noticed(connection: Connection, mutant: Mutant) -> None:
    scenario = replace(CRASHES, mutants=frozenset({mutant}))
    trace = shortest(scenario, lambda state: OTHERWISE[mutant](scenario, state))
    with pytest.raises(AssertionError):
        replay(connection, scenario, trace)
