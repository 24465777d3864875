"""The real ingest loop, submitting while it works: delays in the ledger, no window closed early, no record lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from tests.integration.events import EVENTS, event
from tests.integration.lane import Lane, Lanes

from onceover.errors import TransientError
from onceover.ingest.driver import Ingest
from onceover.ingest.report import Progress

pytestmark = pytest.mark.stack


def make_toml(interval: str, more: str) -> str:
    return EVENTS.replace('interval = "200ms"', f'interval = "{interval}"\n{more}')


def run(driver: Ingest, enough: Callable[[Progress], bool]) -> list[Progress]:
    """Run the loop until `enough` holds; return its progress."""
    stop, done = threading.Event(), []

    def report(progress: Progress) -> None:
        done.append(progress)
        if enough(progress) or len(done) == 200:
            stop.set()

    driver.run(stop, threading.Event(), report)
    assert enough(done[-1]), done[-3:]
    return done


def count_records(lane: Lane) -> int:
    return sum(events for events, *_ in lane.aggregates().values())  # type: ignore[misc]


@pytest.mark.parametrize("control", ["none", pytest.param("pid", marks=pytest.mark.rare)])
def test_backlog_in_waiting_batches_leaves_every_window_right(lanes: Lanes, control: str) -> None:
    more = f'rate_control = "{control}"\nstart_rate = 200\nsharding = "backlog"'
    lane = lanes(toml=make_toml("1s", more), partitions=2, most=700)
    lane.produce([event(n % 10, amount=n) for n in range(1500)], 0)
    lane.produce([event(n % 10, amount=n) for n in range(300)], 1)
    with lane.driver() as driver:
        done = run(driver, lambda progress: progress.every_window_closed)
    assert lane.detect().failed == ()
    assert count_records(lane) == 1800
    full = [progress for progress in done if progress.batch_id is not None]
    assert full[0].records == (700 if control == "none" else 400), "200 a second of each Kafka partition"
    assert all(progress.records <= 700 for progress in full)
    rows = lane.query(
        "SELECT scheduling_delay_ms AS waited FROM onceover.batch WHERE pipeline = %s ORDER BY batch_id", [lane.name]
    )
    assert [round(progress.waited_seconds * 1000) for progress in full] == [row["waited"] for row in rows]
    assert {progress.rate is None for progress in full} == {control == "none"}


@pytest.mark.rare
def test_submitted_batch_follows_and_a_stop_leaves_it_in_the_log(lanes: Lanes) -> None:
    lane = lanes(toml=make_toml("20ms", ""), most=10)
    lane.produce([event(n % 10) for n in range(100)])
    with lane.driver() as driver:
        (first,) = run(driver, lambda progress: progress.waiting > 3)
    assert (first.records, first.lag) == (10, {0: 90})
    (row,) = lane.query("SELECT count(*) AS n FROM onceover.batch WHERE pipeline = %s", [lane.name])
    assert row["n"] == 1, "waiting batches are in the log only"
    with lane.driver() as driver:
        done = run(driver, lambda progress: progress.lag == {0: 0})
    assert [progress.records for progress in done] == [10] * 9
    assert max(progress.waited_seconds for progress in done) > 0
    assert count_records(lane) == 100


@pytest.mark.rare
@pytest.mark.parametrize("failing", ["append", "commit"])
def test_failed_attempt_is_retried_though_others_wait(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    lane = lanes(toml=make_toml("20ms", ""), most=10)
    lane.produce([event(n % 10) for n in range(30)])
    with lane.driver() as driver:
        part = driver._offsets if failing == "commit" else driver
        name = "commit" if failing == "commit" else "_append"
        real, calls = getattr(part, name), []

        def once(*given: object) -> object:
            calls.append(given)
            if len(calls) == 2:
                raise TransientError("not this time")
            return real(*given)

        monkeypatch.setattr(part, name, once)
        done = run(driver, lambda progress: progress.lag == {0: 0})
    assert count_records(lane) == 30, "what has landed is not read again"
    assert sum(progress.records for progress in done) == (20 if failing == "commit" else 30), "one was never reported"
    assert lane.detect().failed == ()


@pytest.mark.rare
def test_window_stays_open_for_records_that_came_during_a_wait(lanes: Lanes) -> None:
    """Quiet, and then a burst: by then the Kafka partition counts as idle only if nothing new is in it."""
    lane = lanes(toml=make_toml("1s", ""), idle_after="100ms")
    lane.produce([event(1)])
    late: list[Progress] = []

    def burst(progress: Progress) -> bool:
        if progress.batch_id is not None and not late:
            lane.produce([event(2)] * 5)
            late.append(progress)
            return False
        return bool(late)

    with lane.driver() as driver:
        done = run(driver, burst)
    assert [progress.records for progress in done] == [1, 5]
    assert not done[1].every_window_closed
    assert count_records(lane) == 6
