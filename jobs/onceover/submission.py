"""Batches submitted every interval, whether or not the last one is done. They wait in line and hold offset ranges only:
nothing is read and nothing stands in the ledger before a batch's turn has come."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol

from onceover.errors import OnceoverError
from onceover.kafka import Topic, TopicFacts
from onceover.offsets import OffsetRange
from onceover.pace.controller import RateController, Timing
from onceover.pipeline import IngestPolicy
from onceover.plan import next_ranges

MOST_WAITING = 100
"""More would wait for minutes while the log keeps their records just as well."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A batch that waits. `rate` is what it was allowed, in offsets a second, None without rate control."""

    ranges: tuple[OffsetRange, ...]
    at_ms: float
    rate: float | None
    drained: bool

    @property
    def elements(self) -> int:
        return sum(map(len, self.ranges))


class Controller(Protocol):
    """See RateController."""

    def submit(
        self, now_ms: float, done: Timing | None, running: Timing | None = None, waiting_since_ms: float | None = None
    ) -> float: ...


class Submissions:
    """One driver's. `next` is for the driver's thread, which runs the batches; submitting is done in a thread of its
    own. Ends with `stop`."""

    def __init__(self, topic: Topic, policy: IngestPolicy, stop: threading.Event) -> None:
        self._topic, self._policy, self._stop = topic, policy, stop
        self._condition = threading.Condition()
        self._waiting: deque[Submitted] = deque()
        self._generation: str | None = None
        self._reached: dict[int, int] = {}  # by Kafka partition, up to where batches were submitted
        self._controller: Controller | None = None
        self._running: Timing | None = None
        self._done: Timing | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._submit_every_interval, name="submissions", daemon=True)

    def __enter__(self) -> Submissions:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=30)

    @property
    def waiting(self) -> int:
        """How many batches wait in line."""
        return len(self._waiting)

    def next(self, facts: TopicFacts, at: Mapping[int, int]) -> Submitted | None:
        """The batch whose turn it is, None if an interval passed without one. What waits goes on exactly at `at`, where
        reading stands; otherwise (an attempt failed, somebody set offsets, the topic changed) it is submitted anew."""
        with self._condition:
            if self._generation != facts.generation or not self._goes_on(at):
                self._begin(facts, at)
            if self._thread.ident is None:
                self._thread.start()
            self._condition.wait_for(lambda: self._waiting or self._ended, self._interval_s)
            if self._ended and not self._stop.is_set():  # its traceback is told by Python
                raise RuntimeError("the thread that submits batches has ended")
            if not self._waiting or self._stop.is_set():
                return None
            submitted = self._waiting.popleft()
            self._running = Timing(submitted.elements, submitted.at_ms, _now_ms(), None, submitted.drained)
            return submitted

    def done(self) -> None:
        """The batch that `next` gave has landed."""
        with self._condition:
            if self._running is not None:
                self._done, self._running = replace(self._running, ended_ms=_now_ms()), None

    @property
    def _interval_s(self) -> float:
        return self._policy.interval_ms / 1000

    def _goes_on(self, at: Mapping[int, int]) -> bool:
        expected = dict(self._reached)
        for submitted in reversed(self._waiting):
            expected.update({r.source.kafka_partition: r.start for r in submitted.ranges})
        return expected == dict(at)

    def _begin(self, facts: TopicFacts, at: Mapping[int, int]) -> None:
        self._waiting.clear()
        self._running = None
        self._generation, self._reached = facts.generation, dict(at)
        if self._controller is None:
            self._controller = self._control(len(at))

    def _control(self, kafka_partitions: int) -> Controller | None:
        policy = self._policy
        if policy.rate_control == "none":
            return None
        most = policy.max_records_per_batch / self._interval_s
        return RateController(policy.interval_ms, kafka_partitions, policy.min_rate, most, policy.start_rate)

    def _submit_every_interval(self) -> None:
        due = time.monotonic()
        try:
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                self._submit()
                due = max(due + self._interval_s, time.monotonic())
        finally:
            with self._condition:
                self._ended = True
                self._condition.notify_all()

    def _submit(self) -> None:
        try:
            facts = self._topic.facts()
        except OnceoverError:
            return  # the driver asks the same and tells it
        with self._condition:
            rate = self._rate()
            within = all(facts.earliest.get(p, at + 1) <= at <= facts.end.get(p, -1) for p, at in self._reached.items())
            known = facts.generation == self._generation and facts.end.keys() == self._reached.keys() and within
            if not known or len(self._waiting) >= MOST_WAITING:
                return  # it is planned anew when the driver sees it
            most = self._policy.max_records_per_batch
            if rate is not None:
                most = max(1, min(most, round(rate * self._interval_s)))
            ranges = next_ranges(facts.generation, self._reached, facts.end, most, fair=self._policy.share == "fair")
            if not ranges:
                return
            self._reached.update({r.source.kafka_partition: r.end for r in ranges})
            self._waiting.append(Submitted(ranges, _now_ms(), rate, self._reached == dict(facts.end)))
            self._condition.notify_all()

    def _rate(self) -> float | None:
        if self._controller is None:
            return None
        since = self._waiting[0].at_ms if self._waiting else None
        return self._controller.submit(_now_ms(), self._done, self._running, since)


def _now_ms() -> float:
    return time.monotonic() * 1000
