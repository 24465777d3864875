"""Batches under a varying load, simulated to the millisecond, independent of the machine.

A batch is submitted every interval and waits in a FIFO queue; it takes its records from the log when it is submitted,
and its processing takes time in proportion to them, give or take seeded noise, and what every batch takes.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean

from onceover.ingest.rate_control import Pace, PidEstimator, Timing
from onceover.model.batch_plan import plan_ranges

INTERVAL_MS = 1000
Load = Callable[[int], float]
"""Records a second that are produced at that ms."""


class NoControl:
    def submit(self, now_ms: float, running: Timing | None = None, waiting_since_ms: float | None = None) -> float:
        return float("inf")

    def record_end(self, timing: Timing) -> None:
        pass


@dataclass(slots=True)
class FixedLimit(NoControl):
    rate: float

    def submit(self, now_ms: float, running: Timing | None = None, waiting_since_ms: float | None = None) -> float:
        return self.rate


@dataclass(slots=True)
class SparksEstimator:
    """DStreams' back-pressure: the PID estimate, made when a batch is done and used from the next submission on. Before
    the second batch is done there is no estimate, and Spark reads without a limit unless one is configured."""

    first: float = float("inf")
    estimator: PidEstimator = field(default_factory=lambda: PidEstimator(INTERVAL_MS, least=100))
    rate: float | None = None

    def submit(self, now_ms: float, running: Timing | None = None, waiting_since_ms: float | None = None) -> float:
        return self.rate if self.rate is not None else self.first

    def record_end(self, timing: Timing) -> None:
        ended = timing.ended_ms or 0.0
        rate = self.estimator.compute(ended, timing.elements, ended - timing.started_ms, timing.delay_ms)
        self.rate = rate if rate is not None else self.rate


@dataclass(slots=True)
class Outcome:
    """Scheduling delays in ms, one a batch that held records."""

    delays: list[float] = field(default_factory=list)
    largest_queue: int = 0
    processed: int = 0

    @property
    def mean_delay(self) -> float:
        return mean(self.delays)


def simulate(
    pace: Pace,
    load: Load,
    capacity: Callable[[int], float],
    seconds: int,
    noise: float = 0.05,
    seed: int = 1,
    overhead_ms: int = 0,
) -> Outcome:
    """Simulate batches. `capacity` is in records a second at that ms, `noise` is the share by which a batch's work
    varies, and `overhead_ms` is the fixed time of a batch of any size."""
    chance, outcome = random.Random(seed), Outcome()
    produced = 0.0
    taken = 0
    queue: deque[tuple[int, int, bool]] = deque()  # submitted, records, drained
    running: Timing | None = None
    work, overhead = 0.0, 0
    for now in range(seconds * 1000):
        produced += load(now) / 1000
        if running is not None:
            overhead -= 1
            work -= capacity(now) / 1000 if overhead < 0 else 0.0
            if work <= 0:
                pace.record_end(replace(running, ended_ms=now))
                outcome.processed += running.elements
                running = None
        if now % INTERVAL_MS == 0:
            backlog = int(produced) - taken
            rate = pace.submit(now, running, queue[0][0] if queue else None)
            records = int(min(backlog, rate * INTERVAL_MS / 1000))
            if records:
                queue.append((now, records, records == backlog))
                taken += records
        if running is None and queue:
            submitted, records, drained = queue.popleft()
            running = Timing(records, submitted, now, None, drained)
            outcome.delays.append(running.delay_ms)
            work = records * (1 + noise * (2 * chance.random() - 1))
            overhead = overhead_ms
        outcome.largest_queue = max(outcome.largest_queue, len(queue))
    return outcome


def batches_until_read(backlog: Sequence[int], most: int, *, fair: bool) -> int:
    """Count the batches of at most `most` offsets that read each Kafka partition's backlog."""
    at, end, batches = dict.fromkeys(range(len(backlog)), 0), dict(enumerate(backlog)), 0
    while at != end:
        at.update({r.source.kafka_partition: r.end for r in plan_ranges("00000000", at, end, most, fair=fair)})
        batches += 1
    return batches


def square_wave(records: int = 600_000, on_s: int = 5, of_s: int = 10, between: float = 0.0) -> Load:
    return lambda now: records / on_s if now // 1000 % of_s < on_s else between


def step(low: float, high: float, at_s: int) -> Load:
    return lambda now: high if now >= at_s * 1000 else low


def ramp(high: float, over_s: int) -> Load:
    return lambda now: high * min(1.0, now / 1000 / over_s)


def steady(capacity: float) -> Callable[[int], float]:
    return lambda now: capacity


def stalling(capacity: float, from_s: int, to_s: int, share: float = 0.05) -> Callable[[int], float]:
    return lambda now: capacity * (share if from_s * 1000 <= now < to_s * 1000 else 1.0)
