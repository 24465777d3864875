"""Jobs that run on a cluster to their end, within a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.lane import Lane

from onceover.errors import TransientError
from onceover_demo.supervised import SupervisedJob
from onceover_local.stack.process import wait_for

Jobs = Callable[..., SupervisedJob]
PATIENCE = 180.0


@contextmanager
def open_jobs(folder: Path) -> Iterator[Jobs]:
    """Make jobs from a script and its arguments, with their logs in the folder; close all at the end of the block."""
    made: list[SupervisedJob] = []

    def make(script: str, *arguments: str) -> SupervisedJob:
        made.append(SupervisedJob(script, arguments, folder / f"{len(made)}.log"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ingest_all(jobs: Jobs, lane: Lane, until: str = "idle, every window closed") -> None:
    ingest = jobs("ingest.py", "--pipeline", lane.name)
    ingest.start()
    wait_until(ingest, lambda: until in ingest.read_log())
    assert ingest.stop() == 0


def start_repair(jobs: Jobs, lane: Lane, request_id: int | None) -> SupervisedJob:
    repair = jobs("repair.py", "--pipeline", lane.name, "--request", str(request_id))
    repair.start()
    return repair


def end_well(repair: SupervisedJob) -> None:
    assert repair.wait(PATIENCE) == 0, repair.read_log()


def wait_until(job: SupervisedJob, so: Callable[[], bool]) -> None:
    try:
        wait_for(so, PATIENCE, "ingest to get there")
    except TransientError as error:
        raise AssertionError(job.read_log()) from error
