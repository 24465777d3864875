"""Batches submitted every interval, whether or not the last one is done. A waiting batch holds offset ranges only:
nothing of it is read or recorded in the ledger before its turn."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

from onceover.errors import OnceoverError
from onceover.ingest.rate_control import Pace, RateController, Timing
from onceover.kafka import Topic, TopicFacts
from onceover.model.batch_plan import limit_replay, plan_ranges
from onceover.model.contract import Cutovers
from onceover.model.offsets import OffsetRange
from onceover.model.pipeline import IngestPolicy

MAX_WAITING = 100
"""The longest line: more would wait for minutes, and the log keeps their records just as well."""


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch that waits. `rate` is its limit in offsets a second, None without rate control; a `drained` batch takes
    the rest of the log."""

    ranges: tuple[OffsetRange, ...]
    at_ms: float
    rate: float | None
    drained: bool

    @property
    def elements(self) -> int:
        return sum(map(len, self.ranges))


class Submissions:
    """One driver's line of batches, for one thread: a second thread submits while the first is within `track`, and ends
    with that block. Times are in ms of one monotonic clock."""

    def __init__(
        self,
        topic: Topic,
        policy: IngestPolicy,
        pace: Pace | None = None,
        cutovers: Cutovers | None = None,
        limit: Callable[[TopicFacts], TopicFacts] = lambda facts: facts,
    ) -> None:
        """`pace` limits batches instead of the policy's rate control; no batch reads beyond the next of `cutovers`, nor
        beyond the ends that `limit` leaves of the logs."""
        self._limit = limit
        self._topic, self._policy, self._pace, self._cutovers = topic, policy, pace, cutovers or Cutovers()
        self._waiting: deque[WaitingBatch] = deque()
        self._generation: str | None = None
        self._reached: dict[int, int] = {}  # by Kafka partition, the end of the last submitted range
        self._bounds: Mapping[int, Sequence[int]] = {}
        self._due_ms = _now_ms()
        self._is_behind = False
        self._most = policy.max_records_per_batch

    @property
    def waiting(self) -> int:
        """The number of batches in line."""
        return len(self._waiting)

    @property
    def most(self) -> int:
        """The most offsets that the last submitted batch might have, the policy's limit before the first."""
        return self._most

    def wait(self, stop: threading.Event) -> None:
        """Wait until a batch is in line, the next one is due, or `stop` is set. Without rate control, a driver that is
        behind does not wait."""
        if not self._waiting and not (self._is_behind and self._pace is None):
            stop.wait(max(0.0, self._due_ms - _now_ms()) / 1000)

    def next(
        self, facts: TopicFacts, at: Mapping[int, int], bounds: Mapping[int, Sequence[int]] | None = None
    ) -> WaitingBatch | None:
        """Return the next batch, None if there is nothing to read. No batch reads across one of `bounds`, offsets in
        ascending order by Kafka partition.

        Waiting batches must continue exactly at `at`, the next offset by Kafka partition, and still be in the log;
        otherwise (a failed attempt, offsets set by hand, another topic) all are dropped and submitted again.
        """
        facts = self._limit(facts)
        if not self._continues(facts, at):
            self._waiting.clear()
            self._generation, self._reached = facts.generation, dict(at)
        self._bounds = bounds or {}
        if self._pace is None and self._policy.rate_control == "pid":
            self._pace = _make_rate_controller(self._policy, len(at))
        if not self._waiting:
            self._set_next_due()
            self._submit(facts, None)
        return self._waiting.popleft() if self._waiting else None

    @contextmanager
    def track(self, batch: WaitingBatch) -> Iterator[float]:
        """Submit other batches while the block runs this one; yields how many seconds this one waited.

        Reports the batch to rate control, unless the block raises.
        """
        timing = Timing(batch.elements, batch.at_ms, _now_ms(), None, batch.drained)
        is_over = threading.Event()
        with ThreadPoolExecutor(1, "submissions") as pool:
            future = pool.submit(self._submit_until, is_over, timing)
            try:
                yield timing.delay_ms / 1000
                ended_ms = _now_ms()
            finally:
                is_over.set()
        future.result()
        if self._pace is not None:
            self._pace.record_end(replace(timing, ended_ms=ended_ms))

    def _continues(self, facts: TopicFacts, at: Mapping[int, int]) -> bool:
        expected = dict(self._reached)
        for batch in reversed(self._waiting):
            expected.update({r.source.kafka_partition: r.start for r in batch.ranges})
        return facts.generation == self._generation and expected == dict(at) and self._is_within(facts)

    def _is_within(self, facts: TopicFacts) -> bool:
        """Return whether the topic still holds the ranges that were submitted."""
        return (
            facts.generation == self._generation
            and facts.end.keys() == self._reached.keys()
            and all(facts.earliest[p] <= at <= facts.end[p] for p, at in self._reached.items())
        )

    def _submit_until(self, is_over: threading.Event, running: Timing) -> None:
        while not is_over.wait(max(0.0, self._due_ms - _now_ms()) / 1000):
            self._set_next_due()
            try:
                facts = self._limit(self._topic.facts())
            except OnceoverError:
                continue  # the driver's own request reports it
            if not self._is_within(facts):
                return  # the driver sees it in its next turn and submits again
            if len(self._waiting) < MAX_WAITING:
                self._submit(facts, running)

    def _submit(self, facts: TopicFacts, running: Timing | None) -> None:
        most, rate, now_ms = self._policy.max_records_per_batch, None, _now_ms()
        if self._pace is not None and self._reached != dict(facts.end):
            rate = self._pace.submit(now_ms, running, self._waiting[0].at_ms if self._waiting else None)
            most = round(min(most, max(1.0, rate * self._policy.interval_ms / 1000)))
        self._most, is_fair = most, self._policy.share == "fair"
        end = self._cutovers.limit_batch(facts.generation, self._reached, facts.end)
        end = limit_replay(self._reached, end, self._bounds)
        ranges = plan_ranges(facts.generation, self._reached, end, most, fair=is_fair)
        self._reached.update({r.source.kafka_partition: r.end for r in ranges})
        self._is_behind = self._reached != dict(facts.end)
        if ranges:
            self._waiting.append(WaitingBatch(ranges, now_ms, rate, drained=not self._is_behind))

    def _set_next_due(self) -> None:
        """Set the next submission to the end of this interval; missed intervals are not made up for."""
        late_ms = _now_ms() - self._due_ms
        if late_ms >= 0:
            self._due_ms += (1 + late_ms // self._policy.interval_ms) * self._policy.interval_ms


def _make_rate_controller(policy: IngestPolicy, kafka_partitions: int) -> RateController:
    most = policy.max_records_per_batch * 1000 / policy.interval_ms
    return RateController(policy.interval_ms, kafka_partitions, policy.min_rate, most, policy.start_rate)


def _now_ms() -> float:
    return time.monotonic() * 1000
