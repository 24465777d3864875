"""Traces of mutants and seeded walks of the model on real parts: what is certified at the end is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.integration.lane import Lane
from tests.protocol.exploration import walk
from tests.protocol.trust.model import moves
from tests.protocol.trust.mutants import MUTANTS, Mutant
from tests.protocol.trust.replay import Replay
from tests.protocol.trust.scenarios import ALL, WALKED
from tests.protocol.trust.state import Event, Move, Scenario
from tests.protocol.trust.world import world_of

from onceover_local.stack import Stack

pytestmark = pytest.mark.stack
Lanes = Callable[..., Lane]
MOST = 40  # actions of a walk


def replay(
    lanes: Lanes, stack: Stack, environment: pytest.MonkeyPatch, scenario: Scenario, trace: list[Move]
) -> Replay:
    lane = lanes(offset_store="postgres" if scenario.stored_inside else "kafka")
    replayed = Replay(lane, stack, environment, scenario.records)
    try:
        replayed.follow(trace)
        replayed.settle()
        return replayed
    except BaseException as error:
        error.add_note("\n  ".join(["of the trace", *(str(action) for action, _ in trace)]))
        raise
    finally:
        replayed.kill()


MAIN = ("adopt loss_asks_raw in crash2-in",)
RARE = ("fence in restore3-out", "landing_compares in cut0-in")  # `make model` replays all that are missed
WALKS = 1  # of 200, for `make test-faults`


def marks_of(mutant: Mutant) -> tuple[pytest.MarkDecorator, ...]:
    if mutant.name in MAIN:
        return ()
    return (pytest.mark.rare,) if mutant.name in RARE else (pytest.mark.rare, pytest.mark.largest)


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=mutant.name, marks=marks_of(mutant))
        for mutant in MUTANTS
        if mutant.outcome != "not missed"
    ],
)
def test_trace_of_a_mutant_ends_right_on_real_parts(
    lanes: Lanes, stack: Stack, monkeypatch: pytest.MonkeyPatch, mutant: Mutant
) -> None:
    shown = mutant.explore().shown
    assert shown is not None
    replayed = replay(lanes, stack, monkeypatch, mutant.scenario, list(shown.trace))
    assert replayed.has_overwritten or "keep_diverged" not in mutant.without


@pytest.mark.rare
@pytest.mark.parametrize(
    "seed", [*range(WALKS), *(pytest.param(seed, marks=pytest.mark.largest) for seed in range(WALKS, 200))]
)
def test_random_walk_ends_right_on_real_parts(
    lanes: Lanes, stack: Stack, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    scenario = WALKED["inside" if seed % 2 else "outside"]
    replay(lanes, stack, monkeypatch, scenario, list(walk(world_of(scenario), seed, MOST)))


@pytest.mark.rare
@pytest.mark.largest
def test_line_past_every_end_of_its_log_ends_right(lanes: Lanes, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backup has seen the log end before a line that landed later; then the log was cut there."""
    scenario, lands = ALL["cut-restore"].scenario, (Event.READ, Event.APPENDED, Event.INCREMENTED, Event.LANDED)
    scenario = replace(scenario, stored_inside=True)
    state, trace = scenario.start(), []
    for event in (
        Event.MARKED, Event.REGISTERED, Event.PRODUCED, Event.PLANNED, *lands, Event.BACKED_UP,
        Event.PRODUCED, Event.PLANNED, *lands, Event.CUT, Event.RESTORED,
    ):  # fmt: skip
        trace.append([move for move in moves(scenario, state) if move[0].did is event][-1])
        state = trace[-1][1]
    assert (state.log_end, state.ledger.reach, state.files) == (1, 1, ((0,), (2,)))
    replayed = replay(lanes, stack, monkeypatch, scenario, trace)
    assert replayed.has_past_end
