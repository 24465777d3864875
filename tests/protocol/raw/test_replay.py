"""Traces of mutants and seeded walks of the model on real parts: what is certified at the end is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from _pytest.mark import ParameterSet
from tests.integration.lane import Lane
from tests.protocol.exploration import explore, walk
from tests.protocol.raw.events import Event
from tests.protocol.raw.model import moves, world_of
from tests.protocol.raw.mutants import STUCK, WRONG
from tests.protocol.raw.replay import Replay, can_follow
from tests.protocol.raw.scenarios import ALL, WALKED
from tests.protocol.raw.state import Left, Move, Scenario

pytestmark = pytest.mark.stack
MOST = 40  # actions of a walk
MAIN = ("extras",)
RARE = ("wait", "proof")  # `make model` replays all that can be followed
FOLLOWED = {rule: name for rule, name in {**WRONG, **STUCK}.items() if can_follow(ALL[name].scenario)}
WALKS = 1  # of 200, for `make test-faults`
WORLDS = (
    *(replace(WALKED[name], left=WALKED[name].left._replace(cuts=0)) for name in ("outside", "inside", "two")),
    Scenario((3,), Left(crashes=2, expiries=2, takeovers=1, foreign=1, retentions=1), stored_inside=True),
)
LANDS = (Event.PLANNED, Event.READ, Event.APPENDED, Event.INCREMENTED, Event.LANDED)
Begin = Callable[[Scenario], Replay]


@pytest.fixture
def begin(lanes: Callable[..., Lane], monkeypatch: pytest.MonkeyPatch) -> Begin:
    def make(scenario: Scenario) -> Replay:
        store = "postgres" if scenario.stored_inside else "kafka"
        return Replay(lanes(offset_store=store, partitions=len(scenario.records)), monkeypatch, scenario)

    return make


def carry_out(replay: Replay, trace: list[Move]) -> None:
    try:
        replay.follow(trace)
        replay.settle()
    except BaseException as error:
        error.add_note("\n  ".join(["of the trace", *(str(action) for action, _ in trace)]))
        raise
    finally:
        replay.kill()


def mark(rule: str) -> ParameterSet:
    marks = () if rule in MAIN else (pytest.mark.rare,) if rule in RARE else (pytest.mark.rare, pytest.mark.largest)
    return pytest.param(rule, marks=marks)


@pytest.mark.parametrize("rule", [mark(rule) for rule in FOLLOWED])
def test_trace_of_a_mutant_ends_right_on_real_parts(begin: Begin, rule: str) -> None:
    scenario = ALL[FOLLOWED[rule]].scenario.without(rule)
    shown = explore(world_of(scenario)).shown
    assert shown is not None
    carry_out(begin(scenario), list(shown.trace))


@pytest.mark.rare
@pytest.mark.parametrize(
    "seed", [*range(WALKS), *(pytest.param(seed, marks=pytest.mark.largest) for seed in range(WALKS, 200))]
)
def test_random_walk_ends_right_on_real_parts(begin: Begin, seed: int) -> None:
    scenario = WORLDS[seed % len(WORLDS)]
    carry_out(begin(scenario), list(walk(world_of(scenario), seed, MOST)))


@pytest.mark.rare
def test_extra_that_lands_later_is_counted_once(begin: Begin) -> None:
    """A driver dies between its append to a closed window and its increment: a repair counts what it appended before
    the next driver lands it."""
    scenario = Scenario((3,), Left(crashes=1), stored_inside=True)
    trace = take(
        scenario,
        Event.REGISTERED, Event.PRODUCED, Event.PRODUCED, *LANDS[:3], *LANDS[2:],
        Event.PRODUCED, *LANDS[:3], Event.CRASHED, Event.CLAIMED, Event.SCANNED, Event.PUBLISHED, *LANDS,
    )  # fmt: skip
    published = next(at for at, (action, _) in enumerate(trace, 1) if action.did is Event.PUBLISHED)
    replay = begin(scenario)
    try:
        replay.follow(trace[:published])
        held = replay.look()
        assert (held.lost[0], held.counted[0]) == ((), {0: 1, 4: 1})
    finally:
        replay.kill()
    carry_out(replay, trace[published:])


def take(scenario: Scenario, *events: Event) -> list[Move]:
    """Return the first move of each of these kinds, one after the other."""
    state, trace = scenario.start(), []
    for event in events:
        trace.append(next(move for move in moves(scenario, state) if move[0].did is event))
        state = trace[-1][1]
    return trace
