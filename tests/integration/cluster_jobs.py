"""Jobs that run on a cluster to their end, within a deadline."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.lane import Lane

from onceover.errors import TransientError
from onceover_demo.supervised import SupervisedJob
from onceover_local.stack.process import wait_for

Jobs = Callable[..., SupervisedJob]
PATIENCE = 180.0


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
