"""Ours beside Spark's estimator under the same seeded loads: batches wait less, and no less is processed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bench.burst_simulation import (
    FixedLimit,
    Load,
    NoControl,
    Outcome,
    SparksEstimator,
    batches_until_read,
    ramp,
    simulate,
    square_wave,
    stalling,
    steady,
    step,
)

from onceover.ingest.rate_control import Pace, RateController

MEAN, SECONDS = 60_000, 120


def make_controller() -> RateController:
    return RateController(1000, 4, 100, 1e9, 500)


def simulate_both(
    load: Load, capacity: Callable[[int], float], seed: int = 1, first: float = float("inf")
) -> tuple[Outcome, Outcome]:
    found = [
        simulate(pace, load, capacity, SECONDS, 0.02, seed)
        for pace in (make_controller(), SparksEstimator(first=first))
    ]
    return found[0], found[1]


@pytest.mark.parametrize("first", [float("inf"), 2000], ids=["as Spark begins", "as ours begins"])
@pytest.mark.parametrize("spare", [1.2, 1.3, 1.5, 1.7])
def test_square_wave_batches_wait_at_most_a_third_as_long(spare: float, first: float) -> None:
    for seed in range(3):
        found, sparks = simulate_both(square_wave(), steady(MEAN * spare), seed, first)
        assert found.mean_delay <= 0.35 * sparks.mean_delay
        assert found.processed >= 0.99 * sparks.processed


@pytest.mark.parametrize("spare", [1.2, 1.7])
@pytest.mark.parametrize("shape", ["step", "ramp", "stall"])
def test_batches_under_other_loads_wait_no_longer(shape: str, spare: float) -> None:
    most = MEAN * spare
    load: Load = {"step": step(MEAN / 2, 1.15 * most, 30), "ramp": ramp(1.2 * most, 60)}.get(shape, lambda now: MEAN)
    capacity = stalling(most, 40, 50) if shape == "stall" else steady(most)
    found, sparks = simulate_both(load, capacity)
    assert found.mean_delay <= sparks.mean_delay
    assert found.largest_queue <= sparks.largest_queue
    assert found.processed >= 0.98 * sparks.processed


@pytest.mark.parametrize("spare", [1.2, 1.7])
def test_trickle_between_bursts_does_not_look_like_slowness(spare: float) -> None:
    """Between bursts a batch is mostly overhead; both begin at the same rate."""
    load, capacity = square_wave(between=500.0), steady(MEAN * spare / 0.6)
    found, sparks = (simulate(pace, load, capacity, SECONDS, 0.02, overhead_ms=400)
                     for pace in (make_controller(), SparksEstimator(first=2000)))  # fmt: skip
    assert found.mean_delay <= 0.35 * sparks.mean_delay
    assert found.processed >= sparks.processed


def test_bursts_queue_up_without_control() -> None:
    """Or the simulation would show nothing."""

    def of(pace: Pace) -> Outcome:
        return simulate(pace, square_wave(), steady(MEAN * 1.2), SECONDS, 0.02)

    assert of(NoControl()).mean_delay > 10 * of(SparksEstimator()).mean_delay
    assert of(FixedLimit(MEAN * 1.2)).mean_delay < of(SparksEstimator()).mean_delay, (
        "who knows the capacity needs no control"
    )


def test_fair_shares_read_a_one_sided_backlog_in_fewest_batches() -> None:
    backlog = [80_000, 6_667, 6_667, 6_666]
    assert batches_until_read(backlog, 10_000, fair=True) == 10
    assert batches_until_read(backlog, 10_000, fair=False) == 32
