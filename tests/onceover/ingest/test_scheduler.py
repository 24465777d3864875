"""Batches are submitted while another runs, in order, from exactly the position of reading."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from onceover.errors import UnreachableError
from onceover.ingest.rate_control import Timing
from onceover.ingest.scheduler import MAX_WAITING, Submissions, WaitingBatch
from onceover.kafka import TopicFacts
from onceover.model.contract import Cutovers
from onceover.model.offsets import KafkaPartition
from onceover.model.pipeline import IngestPolicy

INTERVAL_MS = 20


def facts(*ends: int, generation: str = "0badcafe", earliest: int = 0) -> TopicFacts:
    return TopicFacts("t", "id", generation, dict.fromkeys(range(len(ends)), earliest), dict(enumerate(ends)))


class Log:
    """A topic that a test writes to; `now` is swapped whole, for another thread reads it."""

    def __init__(self) -> None:
        self.now: TopicFacts | Exception = facts(0, 0)
        self.asked = 0

    def facts(self) -> TopicFacts:
        self.asked += 1
        if isinstance(self.now, Exception):
            raise self.now
        return self.now


class RecordedPace:
    """A pace that allows a fixed rate, and records the batches it is given."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.heard: list[Timing] = []
        self.asked: list[tuple[Timing | None, float | None]] = []

    def submit(self, now_ms: float, running: Timing | None = None, waiting_since_ms: float | None = None) -> float:
        self.asked.append((running, waiting_since_ms))
        return self.rate

    def record_end(self, timing: Timing) -> None:
        self.heard.append(timing)


@pytest.fixture
def log() -> Log:
    return Log()


def make_submissions(
    log: Log, pace: RecordedPace | None = None, most: int = 1000, cutovers: Cutovers | None = None, **changed: Any
) -> Submissions:
    policy = IngestPolicy(0, 1, INTERVAL_MS, most, "none", "", "g", "read_committed", "earliest", **changed)
    return Submissions(log, policy, pace, cutovers)  # type: ignore[arg-type]


def list_ranges(submitted: WaitingBatch | None) -> list[tuple[int, int, int]]:
    assert submitted is not None
    return [(r.source.kafka_partition, r.start, r.end) for r in submitted.ranges]


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.001)


def wait_until_read(log: Log, times: int) -> None:
    before = log.asked
    wait_until(lambda: log.asked >= before + times)


def track_next(submissions: Submissions, facts: TopicFacts, at: dict[int, int]) -> Any:
    submitted = submissions.next(facts, at)
    assert submitted is not None
    return submissions.track(submitted)


def test_batches_are_submitted_during_one_and_follow_in_order(log: Log) -> None:
    submissions = make_submissions(log)
    log.now = facts(5, 0)
    with track_next(submissions, log.now, {0: 0, 1: 0}):
        log.now = facts(7, 1)
        wait_until(lambda: submissions.waiting == 1)
        log.now = facts(7, 4)
        wait_until(lambda: submissions.waiting == 2)
    assert list_ranges(submissions.next(facts(9, 9), {0: 5, 1: 0})) == [(0, 5, 7), (1, 0, 1)]
    assert list_ranges(submissions.next(facts(9, 9), {0: 7, 1: 1})) == [(1, 1, 4)]
    assert list_ranges(submissions.next(facts(9, 9), {0: 7, 1: 4})) == [(0, 7, 9), (1, 4, 9)]
    assert submissions.next(facts(9, 9), {0: 9, 1: 9}) is None


def test_batch_ends_at_a_cutover_and_the_rest_is_the_next(log: Log) -> None:
    old, new = KafkaPartition("0badcafe", 0), KafkaPartition("0badcafe", 1)
    submissions = make_submissions(log, cutovers=Cutovers(2, {old: {2: 3}, new: {2: 2}}))
    log.now = facts(5, 4)
    with track_next(submissions, log.now, {0: 0, 1: 2}):
        wait_until(lambda: submissions.waiting == 1)
    assert list_ranges(submissions.next(log.now, {0: 3, 1: 2})) == [(0, 3, 5), (1, 2, 4)]


def test_batch_never_reads_across_a_landed_bound(log: Log) -> None:
    submissions = make_submissions(log)
    bounds = {0: (2, 4, 8), 1: (1,)}
    assert list_ranges(submissions.next(facts(9, 5), {0: 2, 1: 1}, bounds)) == [(0, 2, 4), (1, 1, 5)]
    assert list_ranges(submissions.next(facts(9, 5), {0: 4, 1: 5}, bounds)) == [(0, 4, 8)]
    assert list_ranges(submissions.next(facts(9, 5), {0: 8, 1: 5}, bounds)) == [(0, 8, 9)]


@pytest.mark.parametrize(
    ("found", "at", "expected"),
    [
        pytest.param(facts(9, 0), {0: 0, 1: 0}, [(0, 0, 9)], id="the attempt failed"),
        pytest.param(facts(9, 0), {0: 2, 1: 0}, [(0, 2, 9)], id="offsets set by hand"),
        pytest.param(facts(2, 0, generation="00000001"), {0: 0, 1: 0}, [(0, 0, 2)], id="recreated"),
        pytest.param(facts(9, 0, 3), {0: 5, 1: 0, 2: 0}, [(0, 5, 9), (2, 0, 3)], id="a Kafka partition was added"),
        pytest.param(facts(9, 9, earliest=8), {0: 8, 1: 8}, [(0, 8, 9), (1, 8, 9)], id="expired"),
        pytest.param(facts(6, 0), {0: 5, 1: 0}, [(0, 5, 6)], id="truncated below what waits"),
    ],
)
def test_waiting_batches_are_replanned_where_reading_moved(
    log: Log, found: TopicFacts, at: dict[int, int], expected: list[tuple[int, int, int]]
) -> None:
    submissions = make_submissions(log)
    log.now = facts(5, 0)  # before the other thread looks: a log that is shorter than what was read ends its work
    with track_next(submissions, log.now, {0: 0, 1: 0}):
        log.now = facts(7, 0)
        wait_until(lambda: submissions.waiting == 1)
    assert list_ranges(submissions.next(found, at)) == expected
    assert submissions.waiting == 0


def test_queue_is_bounded_and_a_batch_holds_at_most_its_limit(log: Log) -> None:
    submissions = make_submissions(log, most=10)
    log.now = facts(10**6, 0)
    with track_next(submissions, log.now, {0: 0, 1: 0}):
        wait_until(lambda: submissions.waiting == MAX_WAITING)
        wait_until_read(log, 3)
    assert submissions.waiting == MAX_WAITING
    assert list_ranges(submissions.next(log.now, {0: 10, 1: 0})) == [(0, 10, 20)]


def test_unreachable_broker_submits_nothing_until_it_is_back(log: Log) -> None:
    submissions = make_submissions(log)
    log.now = UnreachableError("away")
    with track_next(submissions, facts(5, 0), {0: 0, 1: 0}):
        wait_until_read(log, 3)
        assert submissions.waiting == 0
        log.now = facts(8, 0)
        wait_until(lambda: submissions.waiting == 1)
    assert list_ranges(submissions.next(log.now, {0: 5, 1: 0})) == [(0, 5, 8)]


def test_error_of_the_submitting_thread_is_raised(log: Log) -> None:
    submissions = make_submissions(log)
    log.now = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError), track_next(submissions, facts(5, 0), {0: 0, 1: 0}):
        wait_until(lambda: log.asked > 0)  # once, perhaps before this line: the thread ends with it


def test_pace_learns_of_batches_that_ended_not_of_failed_ones(log: Log) -> None:
    pace = RecordedPace(rate=200)
    submissions = make_submissions(log, pace)
    log.now = facts(100, 100)
    with pytest.raises(OSError, match="failed"), track_next(submissions, log.now, {0: 0, 1: 0}):
        raise OSError("failed")
    assert pace.heard == []
    assert pace.asked[0] == (None, None)
    before = len(pace.asked)  # on a slow machine others were submitted before it failed
    with track_next(submissions, log.now, {0: 0, 1: 0}):
        wait_until(lambda: submissions.waiting == 2)
    (heard,) = pace.heard
    assert (heard.elements, heard.drained) == (4, False), "200 a second are 4 in 20 ms"
    assert heard.ended_ms is not None
    assert heard.submitted_ms <= heard.started_ms <= heard.ended_ms
    again, first, second = pace.asked[before : before + 3]
    assert again == (None, None), "of a batch that failed nothing runs any more"
    assert first[0] is not None
    assert first[0].elements == 4
    assert (first[1] is None, second[1] is None) == (True, False), "the second one waits behind the first"


def test_pace_is_not_consulted_for_a_batch_that_is_not_submitted(log: Log) -> None:
    pace = RecordedPace(rate=200)
    assert make_submissions(log, pace).next(facts(3, 0), {0: 3, 1: 0}) is None
    assert pace.asked == []


@pytest.mark.parametrize(("rate", "expected"), [(0.001, 1), (1e12, 1000)])
def test_batch_holds_one_offset_at_least_and_its_limit_at_most(log: Log, rate: float, expected: int) -> None:
    submitted = make_submissions(log, RecordedPace(rate)).next(facts(10**6, 10**6), {0: 0, 1: 0})
    assert submitted is not None
    assert (submitted.elements, submitted.rate, submitted.drained) == (expected, rate, False)


class Stop(threading.Event):
    """A stop that is never set; it records the seconds of each wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        return False


def test_drained_driver_waits_for_the_next_interval_or_a_stop(log: Log) -> None:
    submissions, never = make_submissions(log), Stop()
    assert submissions.next(facts(0, 0), {0: 0, 1: 0}) is None
    submissions.wait(never)
    assert 0 < never.waits[0] <= INTERVAL_MS / 1000
    started, stop = time.monotonic(), threading.Event()
    submissions._due_ms += 60_000
    stop.set()
    submissions.wait(stop)
    assert time.monotonic() - started < 10


def test_limit_of_the_last_batch_is_known_to_holes(log: Log) -> None:
    submissions = make_submissions(log, RecordedPace(rate=200))
    assert submissions.most == 1000, "before the first batch"
    log.now = facts(50, 0)
    submissions.next(log.now, {0: 0, 1: 0})
    assert submissions.most == 200 * INTERVAL_MS // 1000
    submissions.next(log.now, {0: 50, 1: 0})
    assert submissions.most == 1000, "nothing fresh waits"


@pytest.mark.parametrize("paced", [False, True])
def test_driver_behind_waits_only_if_a_rate_limits_it(log: Log, paced: bool) -> None:
    submissions = make_submissions(log, RecordedPace(500) if paced else None, most=10)
    submissions.next(facts(100, 0), {0: 0, 1: 0})

    submissions.next(facts(100, 0), {0: 10, 1: 0})
    never = Stop()
    submissions.wait(never)
    assert len(never.waits) == paced


def test_first_batches_are_small_under_rate_control(log: Log) -> None:
    submissions = make_submissions(log, most=10**6, rate_control="pid", start_rate=500)
    first = submissions.next(facts(10**6, 10**6), {0: 0, 1: 0})
    assert first is not None
    assert first.elements == 2 * 500 * INTERVAL_MS / 1000
