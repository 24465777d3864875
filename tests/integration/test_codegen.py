"""Jobs over all of raw or of quarantine choose by its bytes whether Spark compiles their queries, as repairs do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from pyspark.sql import SparkSession
from tests.integration.events import event
from tests.integration.lane import Lanes
from tests.integration.planted_failures import lose_ledger
from tests.integration.releases import accept_nameless, make_nameless, release

from onceover.quarantine import release_job
from onceover.recovery import job

pytestmark = [pytest.mark.stack, pytest.mark.rare]


@dataclass(slots=True)
class Choices:
    """The sizes by which compiling was chosen, and the number of Spark jobs that ran under the choice."""

    spark: SparkSession
    sizes: list[int] = field(default_factory=list)
    jobs: int = 0

    @contextmanager
    def choose(self, _: SparkSession, size: int) -> Iterator[None]:
        self.sizes.append(size)
        before = self.count_jobs()
        yield
        self.jobs += self.count_jobs() - before

    def count_jobs(self) -> int:
        """Count the jobs that Spark has started so far."""
        started: int = self.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
        return started


def test_rebuild_of_a_ledger_is_compiled_by_the_bytes_of_raw(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    lane.land([event(n) for n in range(10)])
    lose_ledger()
    choices = Choices(lane.spark)
    monkeypatch.setattr(job, "choose_codegen", choices.choose)
    before = choices.count_jobs()
    lane.rebuild()
    assert choices.jobs == choices.count_jobs() - before > 0
    assert set(choices.sizes) == {sum(map(len, lane.raw().values()))}


def test_release_is_compiled_by_the_bytes_of_quarantine(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = lanes()
    lane.land([make_nameless(n) for n in range(10)])
    accept_nameless(lane)
    quarantined = sum(lane.files().list_quarantine_days().values())
    choices = Choices(lane.spark)
    monkeypatch.setattr(release_job, "choose_codegen", choices.choose)
    before = choices.count_jobs()
    assert len(release(lane).windows) == 2
    assert choices.jobs == choices.count_jobs() - before > 0
    assert set(choices.sizes) == {quarantined}
