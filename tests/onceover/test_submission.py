"""Batches are submitted while others run, in order, from exactly where reading stands."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from onceover.errors import UnreachableError
from onceover.kafka import TopicFacts
from onceover.pipeline import IngestPolicy
from onceover.submission import MOST_WAITING, Submissions, Submitted

INTERVAL_MS = 20


class Log:
    """A topic of two Kafka partitions that a test writes to."""

    def __init__(self) -> None:
        self.end = {0: 0, 1: 0}
        self.generation = "0badcafe"
        self.away = False
        self.asked = 0

    def facts(self) -> TopicFacts:
        self.asked += 1
        if self.away:
            raise UnreachableError("away")
        return TopicFacts("t", "id", self.generation, dict.fromkeys(self.end, 0), dict(self.end))

    def wait_until_asked(self, times: int) -> None:
        before = self.asked
        deadline = time.monotonic() + 10
        while self.asked < before + times:
            assert time.monotonic() < deadline
            time.sleep(0.002)


def policy(most: int = 1000, **changed: Any) -> IngestPolicy:
    return IngestPolicy(0, 1, INTERVAL_MS, most, "none", "", "g", "read_committed", "append", "earliest", **changed)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def ranges(submitted: Submitted | None) -> list[tuple[int, int, int]]:
    assert submitted is not None
    return [(r.source.kafka_partition, r.start, r.end) for r in submitted.ranges]


def test_batches_are_submitted_while_one_runs_and_follow_in_order(log: Log, stop: threading.Event) -> None:
    log.end = {0: 5, 1: 0}
    with Submissions(log, policy(), stop) as submissions:  # type: ignore[arg-type]
        assert ranges(submissions.next(log.facts(), {0: 0, 1: 0})) == [(0, 0, 5)]
        log.end = {0: 7, 1: 1}
        log.wait_until_asked(2)
        log.end = {0: 7, 1: 4}
        log.wait_until_asked(2)
        assert submissions.waiting == 2
        submissions.done()
        second = submissions.next(log.facts(), {0: 5, 1: 0})
        assert ranges(second) == [(0, 5, 7), (1, 0, 1)]
        assert ranges(submissions.next(log.facts(), {0: 7, 1: 1})) == [(1, 1, 4)]


def test_what_waits_is_forgotten_where_reading_does_not_go_on_there(log: Log, stop: threading.Event) -> None:
    log.end = {0: 5, 1: 0}
    with Submissions(log, policy(), stop) as submissions:  # type: ignore[arg-type]
        submissions.next(log.facts(), {0: 0, 1: 0})
        log.end = {0: 9, 1: 0}
        log.wait_until_asked(2)
        again = submissions.next(log.facts(), {0: 0, 1: 0})  # the attempt failed
        assert ranges(again) == [(0, 0, 9)]
        log.generation, log.end = "00000001", {0: 2, 1: 0}
        assert ranges(submissions.next(log.facts(), {0: 0, 1: 0})) == [(0, 0, 2)]
        log.end = {0: 2, 1: 0, 2: 3}
        anew = submissions.next(log.facts(), {0: 2, 1: 0, 2: 0})
        assert ranges(anew) == [(2, 0, 3)]


def test_a_batch_holds_at_most_what_it_may_and_the_line_has_an_end(log: Log, stop: threading.Event) -> None:
    log.end = {0: 10**6, 1: 0}
    with Submissions(log, policy(most=10), stop) as submissions:  # type: ignore[arg-type]
        assert ranges(submissions.next(log.facts(), {0: 0, 1: 0})) == [(0, 0, 10)]
        log.wait_until_asked(MOST_WAITING + 20)
        assert submissions.waiting == MOST_WAITING


def test_nothing_to_read_takes_an_interval_and_a_stop_none(log: Log, stop: threading.Event) -> None:
    with Submissions(log, policy(), stop) as submissions:  # type: ignore[arg-type]
        assert submissions.next(log.facts(), {0: 0, 1: 0}) is None
        log.end = {0: 1, 1: 0}
        stop.set()
        assert submissions.next(log.facts(), {0: 0, 1: 0}) is None


def test_a_broker_that_is_away_submits_nothing_until_it_is_back(log: Log, stop: threading.Event) -> None:
    log.end = {0: 5, 1: 0}
    facts = log.facts()
    log.away = True
    with Submissions(log, policy(), stop) as submissions:  # type: ignore[arg-type]
        assert submissions.next(facts, {0: 0, 1: 0}) is None
        log.away = False
        log.wait_until_asked(1)
        assert ranges(submissions.next(facts, {0: 0, 1: 0})) == [(0, 0, 5)]


def test_a_thread_that_ended_is_not_waited_for(
    log: Log, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = log.facts()
    monkeypatch.setattr(log, "facts", lambda: 1 // 0)
    monkeypatch.setattr(threading, "excepthook", lambda told: None)
    with Submissions(log, policy(), stop) as submissions, pytest.raises(RuntimeError, match="has ended"):  # type: ignore[arg-type]
        submissions.next(facts, {0: 0, 1: 0})


def test_with_rate_control_the_first_batches_are_small(log: Log, stop: threading.Event) -> None:
    log.end = {0: 10**6, 1: 10**6}
    controlled = policy(most=10**6, rate_control="pid", start_rate=500, min_rate=100)
    with Submissions(log, controlled, stop) as submissions:  # type: ignore[arg-type]
        first = submissions.next(log.facts(), {0: 0, 1: 0})
        assert first is not None
        assert first.elements == 2 * 500 * INTERVAL_MS / 1000
        submissions.done()
        log.wait_until_asked(2)
        second = submissions.next(log.facts(), {0: 10, 1: 10})
        assert second is not None
        assert second.rate is not None
        assert second.elements == max(1, round(second.rate * INTERVAL_MS / 1000))
