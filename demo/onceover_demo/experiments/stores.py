"""The third and the fourth experiment: Onceover's pipeline over each offset store, stopped by SIGTERM and killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onceover.fault_points import Step
from onceover_demo.experiments.pipeline import Trial
from onceover_demo.experiments.topic import KAFKA_PARTITIONS, RecordsOutcome, produce

Make = Callable[..., Trial]
"""A function that makes a Trial from its store and settings."""

SETTINGS = ((1.0, 1000), (1.0, 2000), (2.0, 1500), (2.0, 2500), (4.0, 2000))
EACH = 40  # new records before each kill


@dataclass(frozen=True, slots=True)
class StopResult:
    """The result of one setting of the third experiment: stopped when so many records were `left`, then restarted."""

    interval: float
    rate: int
    left: int
    outcome: RecordsOutcome

    @property
    def right(self) -> bool:
        return self.outcome.lost == self.outcome.repeated == 0 < self.left < self.outcome.processed


@dataclass(frozen=True, slots=True)
class KillResult:
    """The result of a number of kills: the lines in raw, the findings, and the aggregates after the repair.

    `raw` counts lines, so records with two lines are `repeated`; `predicted` is the expected number of those.
    `repaired` is whether the aggregates hold each record once.
    """

    store: str
    kills: int
    predicted: int
    raw: RecordsOutcome
    findings: frozenset[str]
    repaired: bool

    @property
    def right(self) -> bool:
        """Whether nothing is lost, and all repeated records were found and removed by the repair."""
        return (
            self.raw.lost == 0
            and self.raw.repeated == self.predicted
            and self.repaired
            and (not self.predicted or bool(self.findings))
        )


def stop_politely(make: Make, interval: float, rate: int, records: int = 100_000) -> StopResult:
    """Run SEO's way, with offsets in a local file written after each batch: stop gracefully, then read the rest."""
    trial = make("file", interval=interval, most=int(KAFKA_PARTITIONS * interval * rate))
    trial.produced = produce(trial.name, range(records))
    trial.stop_after_batches(1)
    left = trial.read_lag()
    trial.drain()
    return StopResult(interval, rate, left, trial.count_raw())


def kill_between_batch_and_file(make: Make, most: int = 4_000, records: int = 100_000) -> KillResult:
    """Run SEO's extreme case: a kill after the second batch, before its offset file. Exactly that batch repeats."""
    trial = make("file", most=most)
    trial.produced = produce(trial.name, range(records))
    trial.kill_after(Step.LANDED, count=2)
    return _end(trial, 1, most)


def kill_at(make: Make, store: str, steps: Sequence[Step] = tuple(Step)) -> KillResult:
    """Kill ingest once at each of these steps, with new records before each; then drain, judge and repair."""
    trial = make(store, interval=0.2)
    for step in steps:
        first = trial.produced
        trial.produced += produce(trial.name, range(first, first + EACH))
        trial.kill_after(step)
    return _end(trial, len(steps), predict_repeated(store, steps))


def predict_repeated(store: str, steps: Sequence[Step]) -> int:
    """Predict the surplus lines in raw after kills at these steps: records that were appended and are read again.

    A batch reads everything that waits: the records that killed batches have left, and the new ones.
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


def _end(trial: Trial, kills: int, repeated: int) -> KillResult:
    trial.drain()
    raw = trial.count_raw()
    detection = trial.repair()
    kinds = {str(f.kind) for failed in detection.failed for f in failed.findings}
    right = (trial.produced, trial.produced * (trial.produced - 1) // 2)
    return KillResult(trial.store, kills, repeated, raw, frozenset(kinds), trial.count_aggregates() == right)
