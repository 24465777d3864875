"""The rate at which the next batch may read, computed at its submission, whether or not the last batch is done."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Protocol

from onceover.errors import UsageError


@dataclass(frozen=True, slots=True)
class Timing:
    """A batch's size and times, in ms of one clock; `ended_ms` is None while it runs. A `drained` batch took the rest
    of the log."""

    elements: int
    submitted_ms: float
    started_ms: float
    ended_ms: float | None = None
    drained: bool = False

    @property
    def delay_ms(self) -> float:
        return max(0.0, self.started_ms - self.submitted_ms)


class Pace(Protocol):
    """A limit of a topic's batches: `submit` returns the rate at each submission, `record_end` learns from each end."""

    def submit(self, now_ms: float, running: Timing | None = None, waiting_since_ms: float | None = None) -> float: ...
    def record_end(self, timing: Timing) -> None: ...


class RateController:
    """Records a second for a topic, between `least` and `most` for any input.

    Until the first batch is done, `start_rate` for each Kafka partition: a slow start, for a cold JVM's first batch
    takes many times what the next one does. Then, when a batch is submitted,

    1. a batch that is done goes through the PID formula, once;
    2. unless it took as long as the interval or up to `prelx` less: then the rate stays, that is what control is for.
       Three such in a row: the mean of their processing rates;
    3. one that still runs goes through it with its expected rest as block time: what is left of an interval from its
       start, and at least `brelx`.

    A drained batch within the interval shows no limit: the rate stays. Spark's estimator takes the quiet between two
    bursts, when a batch is mostly overhead, for a slow machine.
    """

    def __init__(self, interval_ms: float, kafka_partitions: int, least: float, most: float, start_rate: float) -> None:
        if not (interval_ms > 0 and least > 0):
            raise UsageError(f"an interval of {interval_ms} ms and at least {least} records/s are no pace")
        self._interval, self._least, self._most = interval_ms, least, max(least, most)
        self._rate = self._clamp(start_rate * kafka_partitions)
        self._estimator = PidEstimator(interval_ms, least)
        self._prelx = min(50.0, 0.05 * interval_ms)
        self._brelx = 50.0 if interval_ms > 1000 else 0.05 * interval_ms
        self._done: Timing | None = None
        self._is_learned = False
        self._processing_rate = self._rate  # of the last batch that is done
        self._on_time: deque[float] = deque(maxlen=3)

    def record_end(self, timing: Timing) -> None:
        """Record that a batch has ended; the next `submit` learns from it."""
        self._done, self._is_learned = timing, False

    def submit(self, now_ms: float, running: Timing | None = None, waiting_since_ms: float | None = None) -> float:
        """Return the rate for a batch submitted now. `running` is the batch under way, and `waiting_since_ms` when the
        first batch that waits behind it was submitted."""
        if self._done is None:
            return self._rate
        if not self._is_learned:
            self._learn_from_done(self._done)
            self._is_learned = True
        if running is not None:
            self._learn_from_running(now_ms, running, waiting_since_ms)
        return self._rate

    def _learn_from_done(self, done: Timing) -> None:
        took = (done.ended_ms if done.ended_ms is not None else nan) - done.started_ms
        if done.drained and took <= self._interval:
            self._on_time.clear()
            return
        if 0 < took < inf and done.elements > 0:
            self._processing_rate = done.elements / took * 1000
        if self._interval - self._prelx <= took <= self._interval:
            self._on_time.append(self._processing_rate)
            if len(self._on_time) == 3:
                self._set_rate(sum(self._on_time) / 3)
        else:
            self._on_time.clear()
            self._estimate(done.started_ms + took, done.elements, took, done.delay_ms)

    def _learn_from_running(self, now_ms: float, running: Timing, waiting_since_ms: float | None) -> None:
        elapsed = max(0.0, now_ms - running.started_ms)
        if running.drained and elapsed <= self._interval:
            return
        block = max(self._interval - elapsed, self._brelx)
        # A batch that has just begun is expected to be as fast as the last one: judged by the rate, which it lowers, it
        # would be lowered again and again. A stuck batch shows once it takes longer than that.
        expected = max(elapsed, running.elements / self._processing_rate * 1000)
        delay = max(running.delay_ms, now_ms - waiting_since_ms if waiting_since_ms is not None else 0.0)
        self._on_time.clear()
        self._estimate(now_ms, running.elements, expected, delay, block)

    def _estimate(self, *inputs: float) -> None:
        self._estimator.compute(*inputs)
        if self._estimator.latest_rate > 0:  # less: the estimator has refused every batch so far
            self._set_rate(self._estimator.latest_rate)

    def _set_rate(self, rate: float) -> None:
        self._rate = self._clamp(rate)
        self._estimator.latest_rate = self._rate

    def _clamp(self, rate: float) -> float:
        return min(max(rate, self._least), self._most) if isfinite(rate) else self._least


@dataclass(slots=True)
class PidEstimator:
    """The PID estimate of a rate, from how long the last batch took. Times in ms, rates in records/s.

    With `block_ms` = 0 this is Spark's PIDRateEstimator (org.apache.spark.streaming.scheduler.rate), to the last bit
    that floating point allows. A batch under way has no processing time yet: it has run for some time, and will run
    for about `block_ms` more. Both times of that batch in Spark's formula get the share `block_weight` of that rest
    added:

        processing rate  = elements / (processing time + block_weight * block time)
        historical error = (scheduling delay + block_weight * block time) * processing rate / interval

    The first is the expected pace of the batch under way; the second, the expected wait of the batch that is submitted.
    Both lower the rate while a batch is stuck, the more the longer it is expected to run. Only a share is added: the
    rest is a guess, and a rate that follows guesses swings.
    """

    interval_ms: float
    least: float
    proportional: float = 1.0
    integral: float = 0.2
    derivative: float = 0.0
    block_weight: float = 0.3
    latest_rate: float = field(init=False, default=-1.0)
    _latest_ms: float = field(init=False, default=-1.0)
    _latest_error: float = field(init=False, default=-1.0)
    _is_first: bool = field(init=False, default=True)

    def compute(
        self, time_ms: float, elements: float, processing_ms: float, scheduling_delay_ms: float, block_ms: float = 0.0
    ) -> float | None:
        """Return the new rate; None without elements or time, for the first batch, or for times that are not finite.
        `time_ms` is when the batch was measured; one before the last only sets the clock back."""
        processing_ms += self.block_weight * block_ms
        waiting_ms = scheduling_delay_ms + self.block_weight * block_ms
        usable = all(map(isfinite, (time_ms, elements, processing_ms, waiting_ms)))
        since_update = (time_ms - self._latest_ms) / 1000  # 0 for the smallest differences, too
        if not (usable and since_update > 0 and elements > 0 and processing_ms > 0):
            self._latest_ms = min(self._latest_ms, time_ms) if isfinite(time_ms) else self._latest_ms
            return None
        processing_rate = elements / processing_ms * 1000
        error = self.latest_rate - processing_rate
        historical_error = waiting_ms * processing_rate / self.interval_ms
        d_error = (error - self._latest_error) / since_update
        change = self.proportional * error + self.integral * historical_error + self.derivative * d_error
        new_rate = max(self.latest_rate - change, self.least)
        self._latest_ms = time_ms
        if not isfinite(new_rate):
            return None
        if self._is_first:
            self.latest_rate, self._latest_error, self._is_first = processing_rate, 0.0, False
            return None
        self.latest_rate, self._latest_error = new_rate, error
        return new_rate
