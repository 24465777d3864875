from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.extras import produce
from tests.integration.lane import Lane
from tests.integration.lane_fixtures import lanes, spark_session

from onceover.fault_points import AnyStep
from onceover_demo.supervised import SupervisedJob
from onceover_demo.warm import WarmJobs
from onceover_local.stack import Stack

__all__ = ["Jobs", "hold", "hold_ingest", "lanes", "spark_session"]
Jobs = Callable[..., SupervisedJob]


def hold(job: SupervisedJob, step: AnyStep, **how: Any) -> SupervisedJob:
    """Start the job, as `how` says, and wait until it holds still after the step."""
    job.start(step, **how)
    job.wait_until_held(120)
    return job


def hold_ingest(lane: Lane, jobs: Jobs, step: AnyStep, **how: Any) -> SupervisedJob:
    """Produce ten records, and start an ingest of them that holds still after the step."""
    produce(lane, range(10))
    return hold(jobs("ingest.py", "--pipeline", lane.name), step, **how)


@pytest.fixture(scope="session")
def warm(stack: Stack) -> Iterator[WarmJobs]:
    jobs = WarmJobs(stack.local / "log" / "warm.log")
    yield jobs
    jobs.close()


@pytest.fixture
def jobs(tmp_path: Path, warm: WarmJobs) -> Iterator[Jobs]:
    """Return a starter of jobs: `jobs("ingest.py", "--pipeline", name)` runs on the warm Spark, or with `cold=True` in
    a JVM of its own. Jobs end with the test."""
    made: list[SupervisedJob] = []

    def make(script: str, *arguments: str, cold: bool = False) -> SupervisedJob:
        log = tmp_path / f"{len(made)}.log"
        made.append(SupervisedJob(script, arguments, log) if cold
                    else SupervisedJob(script, arguments, log, warm.launch))  # fmt: skip
        return made[-1]

    yield make
    for job in made:
        job.close()
