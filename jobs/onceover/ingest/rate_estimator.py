"""The PID estimate of a rate, with the time that a batch which is still running will keep the next one waiting."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite


@dataclass(slots=True)
class PidEstimator:
    """Records a second, from how long the last batch took. Times in ms, rates in records/s.

    With `block_ms` = 0 this is Spark's PIDRateEstimator (org.apache.spark.streaming.scheduler.rate), to the last bit
    that floating point allows. A batch that still runs has no processing time yet. What is known: it has run for some
    time, and will go on for about `block_ms`. Both places in which Spark's formula has a time of that batch get the
    share `block_weight` of it besides, which is the whole reconstruction:

        processing rate  = elements / (processing time + block_weight * block time)
        historical error = (scheduling delay + block_weight * block time) * processing rate / interval

    The first says what its pace will have been once it is done; the second, how long the batch that is being submitted
    will have waited. Both lower the rate while a batch is stuck, the more so the longer it was expected to run on, and
    both vanish with it. A share and not all of it: the rest is a guess, and a rate that follows guesses swings.
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
        """The new rate; None without elements or time, for the first batch, or for times that are none. `time_ms` is
        when that was known; one before the last only sets the clock back."""
        processing_ms += self.block_weight * block_ms
        waiting_ms = scheduling_delay_ms + self.block_weight * block_ms
        usable = all(map(isfinite, (time_ms, elements, processing_ms, waiting_ms)))
        if not (usable and time_ms > self._latest_ms and elements > 0 and processing_ms > 0):
            self._latest_ms = min(self._latest_ms, time_ms) if isfinite(time_ms) else self._latest_ms
            return None
        since_update = (time_ms - self._latest_ms) / 1000
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
