"""The third and the fourth experiment: our pipeline over each offset store, stopped politely and killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onceover.fault_points import Step
from onceover_demo.experiments.pipeline import Trial
from onceover_demo.experiments.topic import KAFKA_PARTITIONS, Seen, produce

Make = Callable[..., Trial]
"""A Trial from its store and settings."""

SETTINGS = ((1.0, 1000), (1.0, 2000), (2.0, 1500), (2.0, 2500), (4.0, 2000))
EACH = 40  # records that a killed run finds


@dataclass(frozen=True, slots=True)
class Stopped:
    """One setting of the third experiment, stopped politely when so many records were `left`, and started again."""

    interval: float
    rate: int
    left: int
    outcome: Seen

    @property
    def right(self) -> bool:
        return self.outcome.lost == self.outcome.repeated == 0 < self.left < self.outcome.processed


@dataclass(frozen=True, slots=True)
class Killed:
    """A pipeline whose processes were killed so often: what raw then held, what was found, what the repair left.

    `raw` counts lines, so records that stand there twice are `repeated`; `predicted` is how many that must be.
    `repaired` is whether the aggregates hold each record once.
    """

    store: str
    kills: int
    predicted: int
    raw: Seen
    findings: frozenset[str]
    repaired: bool

    @property
    def right(self) -> bool:
        """Nothing is lost, what is repeated was found, and the repair removed it."""
        return (
            self.raw.lost == 0
            and self.raw.repeated == self.predicted
            and self.repaired
            and (not self.predicted or bool(self.findings))
        )


def stop_politely(make: Make, interval: float, rate: int, records: int = 100_000) -> Stopped:
    """SEO: offsets in a local file, written after each batch; a graceful stop after two batches, then the rest."""
    trial = make("file", interval=interval, most=int(KAFKA_PARTITIONS * interval * rate))
    trial.produced = produce(trial.name, range(records))
    trial.stop_after_batches(1)
    left = trial.lag()
    trial.drain()
    return Stopped(interval, rate, left, trial.in_raw())


def kill_between_batch_and_file(make: Make, most: int = 4_000, records: int = 100_000) -> Killed:
    """SEO's extreme case: killed after the second batch and before its offset file. Exactly that batch repeats."""
    trial = make("file", most=most)
    trial.produced = produce(trial.name, range(records))
    trial.kill_after(Step.LANDED, count=2)
    return _end(trial, 1, most)


def kill_at(make: Make, store: str, steps: Sequence[Step] = tuple(Step)) -> Killed:
    """Killed once at each of these steps, with new records before each; then drained, judged and repaired."""
    trial = make(store, interval=0.2)
    for step in steps:
        first = trial.produced
        trial.produced += produce(trial.name, range(first, first + EACH))
        trial.kill_after(step)
    return _end(trial, len(steps), predicted(store, steps))


def predicted(store: str, steps: Sequence[Step]) -> int:
    """How many lines raw holds too many after kills at these steps: what was appended and is read again is there twice.

    A batch reads all there is: what the killed ones before it have left, and the new records.
    """
    waiting = repeated = 0
    for step in steps:
        waiting += EACH
        in_ledger = store == "postgres" and step is Step.LANDED
        if step in (Step.OFFSETS_COMMITTED, Step.COMMITTED) or in_ledger:
            waiting = 0
        elif step is not Step.BEGUN:
            repeated += waiting
    return repeated


def _end(trial: Trial, kills: int, repeated: int) -> Killed:
    trial.drain()
    raw = trial.in_raw()
    found = trial.repair()
    kinds = {str(f.kind) for failed in found.failed for f in failed.findings}
    right = (trial.produced, trial.produced * (trial.produced - 1) // 2)
    return Killed(trial.store, kills, repeated, raw, frozenset(kinds), trial.in_aggregates() == right)
