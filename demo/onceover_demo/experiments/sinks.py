"""The fifth experiment: which windows readers see wrong after a kill, by sink and step, before and after a repair."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from onceover.fault_points import Step
from onceover.model.pipeline import SINKS
from onceover_demo.experiments.pipeline import Trial
from onceover_demo.experiments.stores import EACH, Make
from onceover_demo.experiments.topic import WINDOWS, find_window, produce

MISCOUNTED: Final[Mapping[str, frozenset[Step]]] = {
    "append": frozenset({Step.INCREMENTED, Step.LANDED}),
    "transactional": frozenset(),
}
"""The steps at which a kill makes each sink count a batch twice, with the offset store `kafka`."""
SECONDS_AFTER_CLOSE = 60.0


@dataclass(frozen=True, slots=True)
class SinkResult:
    """The wrong windows after a kill at one step: once all is read, and after the repair. With `eager`, there was no
    repair but ingest's own, and `seconds` are those from the close of all windows until they were right."""

    sink: str
    eager: bool
    step: Step
    wrong_before: int
    wrong_after: int
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether all windows were wrong before the repair where this sink counts twice, else none, and none after."""
        expected = WINDOWS if self.step in MISCOUNTED[self.sink] and not self.eager else 0
        return self.wrong_before == expected and self.wrong_after == 0 and self.seconds <= SECONDS_AFTER_CLOSE


def list_settings() -> Iterator[tuple[str, bool, Step]]:
    """Yield each sink with each step, and the steps at which `append` counts twice with eager repair."""
    for sink in SINKS:
        yield from ((sink, False, step) for step in Step)
    yield from (("append", True, step) for step in Step if step in MISCOUNTED["append"])


def kill_once(make: Make, sink: str, step: Step, *, eager: bool = False) -> SinkResult:
    """Kill ingest at this step of its first batch, let another process read the rest, and count; then repair."""
    trial = make("kafka", interval=0.2, sink=sink, eager=eager)
    trial.produced = produce(trial.name, range(EACH))
    trial.kill_after(step)
    if eager:
        closed_at: list[float] = []

        def is_right() -> bool:
            if not closed_at and trial.is_drained():
                closed_at.append(time.monotonic())
            return bool(closed_at) and count_wrong(trial) == 0

        trial.run_until(is_right)
        return SinkResult(sink, eager, step, 0, count_wrong(trial), time.monotonic() - closed_at[0])
    trial.drain()
    before = count_wrong(trial)
    trial.repair()
    return SinkResult(sink, eager, step, before, count_wrong(trial))


def count_wrong(trial: Trial) -> int:
    """Count the windows whose records or total differ from what was produced."""
    right: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for n in range(trial.produced):
        count, total = right[find_window(n)]
        right[find_window(n)] = count + 1, total + n
    seen = trial.read_windows()
    return sum(seen.get(window) != right.get(window) for window in seen.keys() | right.keys())
