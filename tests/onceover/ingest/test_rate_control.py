"""The three cases of a submission, and bounds that hold under any clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onceover.errors import UsageError
from onceover.ingest.rate_control import PidEstimator, RateController, Timing

LEAST, MOST = 100.0, 1e6


def make_controller(interval: float = 1000) -> RateController:
    return RateController(interval, 4, LEAST, MOST, 500)


def make_done(elements: int, submitted: float, started: float, ended: float, *, drained: bool = False) -> Timing:
    return Timing(elements, submitted, started, ended, drained)


def compute_after(
    pace: RateController, now: float, batch: Timing, running: Timing | None = None, since: float | None = None
) -> float:
    """Return the rate at a submission after that batch has ended."""
    pace.record_end(batch)
    return pace.submit(now, running, since)


def test_rate_starts_slowly_until_a_batch_is_done() -> None:
    pace = make_controller()
    assert pace.submit(0) == 2000
    assert pace.submit(1000, Timing(2000, 0, 0)) == 2000
    assert pace.submit(2000, Timing(2000, 0, 0), 1000) == 2000
    assert compute_after(pace, 3000, make_done(2000, 0, 0, 2500)) == 2000 / 2.5


def test_batch_out_of_time_is_judged_by_the_formula_once() -> None:
    pace, reference = make_controller(), PidEstimator(1000, LEAST)
    batches = [make_done(2000, 0, 0, 100), make_done(20_000, 1000, 1000, 1700), make_done(28_000, 2000, 2100, 3500)]
    for batch in batches:
        reference.compute(batch.ended_ms or 0, batch.elements, (batch.ended_ms or 0) - batch.started_ms, batch.delay_ms)
        now = math.ceil((batch.ended_ms or 0) / 1000) * 1000
        assert compute_after(pace, now, batch) == pytest.approx(reference.latest_rate, rel=1e-9)
        assert pace.submit(now + 1000) == pytest.approx(reference.latest_rate, rel=1e-9), "not judged again"


@pytest.mark.parametrize(("interval", "inside", "outside"), [(1000, 950, 949), (400, 380, 379), (10_000, 9950, 9949)])
def test_batch_that_took_its_interval_leaves_the_rate_alone(interval: int, inside: int, outside: int) -> None:
    for took, stays in ((inside, True), (interval, True), (outside, False), (interval + 1, False)):
        pace = make_controller(interval)
        first = compute_after(pace, interval, make_done(2000, 0, 0, 100))
        second = compute_after(pace, 3 * interval, make_done(9000, interval, interval, interval + took))
        assert (second == first) == stays, took


def test_batches_on_time_three_in_a_row_give_their_mean_rate() -> None:
    pace = make_controller()
    before = compute_after(pace, 1000, make_done(1000, 0, 0, 100))
    on_time = [make_done(9000, n * 1000, n * 1000, n * 1000 + took) for n, took in ((1, 960), (2, 980), (3, 1000))]
    assert [compute_after(pace, n * 1000 + 1000, batch) for n, batch in ((1, on_time[0]), (2, on_time[1]))] == [
        before,
        before,
    ]
    mean = (9000 / 0.96 + 9000 / 0.98 + 9000 / 1.0) / 3
    assert compute_after(pace, 4000, on_time[2]) == pytest.approx(mean)


def test_stuck_batch_lowers_the_rate_and_a_freed_one_restores_it() -> None:
    pace = make_controller()
    full = compute_after(pace, 1000, make_done(50_000, 0, 0, 900))
    stuck, rates = Timing(50_000, 1000, 1000), []
    for n in range(2, 12):
        rates.append(pace.submit(n * 1000, stuck, 2000 if n > 2 else None))
    assert rates[0] < full
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < full / 5
    now, last = 12_000.0, make_done(50_000, 1000, 1000, 11_500)
    for _ in range(5):
        rate = compute_after(pace, now, last)
        took = rate / full * 1000  # it is as fast as before
        last, now = make_done(int(rate), now, now, now + took), now + max(1000.0, took)
    assert compute_after(pace, now, last) == pytest.approx(full, rel=0.05)


def test_batch_that_drained_the_log_shows_no_limit() -> None:
    pace = make_controller()
    before = compute_after(pace, 1000, make_done(50_000, 0, 0, 900))
    assert compute_after(pace, 2000, make_done(10, 1000, 1000, 1400, drained=True)) == before
    for n in (2, 3, 4):
        on_time = make_done(10, n * 1000, n * 1000, n * 1000 + 980, drained=True)
        assert compute_after(pace, n * 1000 + 1000, on_time) == before
    assert pace.submit(6000, Timing(10, 5000, 5000, drained=True)) == before
    assert pace.submit(6500, Timing(10, 5000, 5000, drained=True)) < before, "but one beyond its interval does"


def test_finished_batch_is_judged_while_the_next_one_runs() -> None:
    pace = make_controller()
    assert compute_after(pace, 2000, make_done(2000, 0, 0, 1600), Timing(2000, 1000, 1600), None) < 2000


def test_values_that_the_estimate_refuses_change_nothing() -> None:
    pace = make_controller()
    assert compute_after(pace, 1000, make_done(2000, 500, 500, 500)) == 2000
    assert compute_after(pace, 2000, make_done(2000, 500, 500, 400)) == 2000
    with pytest.raises(UsageError):
        RateController(1000, 4, 0, MOST, 500)


TIMES = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers(-10, 100_000).map(float))


@example([(0.0, 1, 0.0, 0.0, math.inf, False), (0.0, 0, 0.0, 0.0, None, False)])
@given(
    st.lists(
        st.tuples(TIMES, st.integers(-5, 10**12), TIMES, TIMES, st.one_of(st.none(), TIMES), st.booleans()), max_size=12
    )
)
def test_rate_stays_within_its_bounds_for_any_input(
    batches: list[tuple[float, int, float, float, float | None, bool]],
) -> None:
    pace = make_controller()
    for now, elements, submitted, started, ended, drained in batches:
        timing = Timing(elements, submitted, started, ended, drained)
        rate = compute_after(pace, now, timing, None if ended is not None else timing, submitted)
        assert LEAST <= rate <= MOST


def test_clock_that_jumped_ahead_and_back_does_not_end_control() -> None:
    pace = make_controller()
    compute_after(pace, 1000, make_done(50_000, 0, 0, 900))
    compute_after(pace, 1e12, make_done(50_000, 1000, 1e12 - 500, 1e12))
    compute_after(pace, 3000, make_done(50_000, 2000, 2000, 2900))
    assert compute_after(pace, 8000, make_done(50_000, 3000, 3000, 7900)) == pytest.approx(50_000 / 4.9)


def test_running_batch_has_its_expected_rest_in_both_terms() -> None:
    plain, blocked = PidEstimator(1000, LEAST), PidEstimator(1000, LEAST)
    for estimator in (plain, blocked):
        estimator.compute(1000, 1000, 500, 0)
    assert plain.compute(2000, 1000, 500 + 0.3 * 200, 40 + 0.3 * 200) == blocked.compute(2000, 1000, 500, 40, 200)
