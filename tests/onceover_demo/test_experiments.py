"""The experiments in their short form: the same code as `make experiments`, with fewer records and kills."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onceover.config.endpoints import address, pipelines_folder
from onceover.fault_points import Step
from onceover.ledger.database import upgrade_schema
from onceover.model.pipeline import OFFSET_STORES
from onceover_demo.experiments import auto_commit, late_commit, sinks, stores
from onceover_demo.experiments.pipeline import Trial
from onceover_demo.experiments.topic import RecordsOutcome, count_outcome
from onceover_demo.warm import WarmJobs
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare, pytest.mark.largest]
Make = Callable[..., Trial]


@pytest.fixture(scope="module")
def make(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """A Trial on the session's stack; what it runs is killed on one warm Spark."""
    upgrade_schema(address("postgres"))
    stack.up(["zookeeper", "hbase"])
    log: Path = tmp_path_factory.mktemp("log")
    warm = WarmJobs(log / "warm.log")
    made: list[Trial] = []

    def trial(store: str, **settings: object) -> Trial:
        made.append(Trial(pipelines_folder(), log, store, launch=warm.launch, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield trial
    for one in made:
        one.job.close()
        (pipelines_folder() / f"{one.name}.toml").unlink()
    warm.close()


def test_outcome_of_each_record_is_counted() -> None:
    assert count_outcome([0, 1, 1, 3, 3, 3], 5) == RecordsOutcome(processed=6, lost=2, repeated=3)


def test_auto_commit_runs_ahead_and_a_restart_misses_records(stack: Stack) -> None:
    found = auto_commit.run(records=2_006, interval=0.5, rate=50, seconds=2.0)
    assert (found.first_run, found.outcome.lost, found.outcome.repeated) == (400, 1_606, 0)
    assert found.current_offset == found.log_end_offset == 2_006
    assert found.right


def test_commit_that_waits_for_the_next_batch_repeats_one_batch(stack: Stack) -> None:
    found = late_commit.run(0.5, 40, records=1_000)
    assert (found.predicted, found.outcome) == (80, RecordsOutcome(1_080, 0, 80))
    assert found.right


def test_offset_file_repeats_one_batch_only_when_killed(make: Make) -> None:
    stopped = stores.stop_politely(make, 0.5, 100, records=600)
    assert (stopped.outcome, stopped.right) == (RecordsOutcome(600, 0, 0), True)
    killed = stores.kill_between_batch_and_file(make, most=200, records=600)
    assert (killed.raw, killed.right) == (RecordsOutcome(800, 0, 200), True)
    assert killed.findings == {"duplicated"}


def test_number_of_repeated_lines_follows_from_the_steps() -> None:
    assert stores.predict_repeated("kafka", tuple(Step)) == (2 + 3 + 4) * stores.EACH
    assert stores.predict_repeated("postgres", tuple(Step)) == (2 + 3) * stores.EACH


# The others': kafka and postgres in test_ingest_kills.py, file above.
@pytest.mark.largest
@pytest.mark.parametrize("store", sorted(set(OFFSET_STORES) - {"none", "kafka", "postgres", "file"}))
def test_kill_after_the_landing_loses_and_leaves_no_duplicate(make: Make, store: str) -> None:
    killed = stores.kill_at(make, store, (Step.LANDED,))
    assert killed.right
    assert killed.raw.lost == 0
    assert killed.raw.repeated == stores.EACH


@pytest.mark.parametrize(("sink", "before"), [("append", 2), ("transactional", 0)])
def test_kill_after_increments_is_seen_with_one_sink_alone(make: Make, sink: str, before: int) -> None:
    found = sinks.kill_once(make, sink, Step.INCREMENTED)
    assert (found.wrong_before, found.wrong_after, found.right) == (before, 0, True)
