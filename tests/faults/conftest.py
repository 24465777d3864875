from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.lane_fixtures import lanes, spark_session

from onceover_demo.supervised import SupervisedJob
from onceover_demo.warm import WarmJobs
from onceover_local.stack import Stack

__all__ = ["Jobs", "lanes", "spark_session"]
Jobs = Callable[..., SupervisedJob]


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
