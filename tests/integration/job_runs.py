"""Jobs as processes of their own on a warm Spark: a lane that lands, and its repair and compaction."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.compaction import spoil_rows
from tests.integration.events import event
from tests.integration.extras import sum_up
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, minutes

from onceover.audit import store as audit_store
from onceover.errors import TransientError
from onceover.fault_points import AnyStep
from onceover.repair import confirmation
from onceover_demo.supervised import SupervisedJob
from onceover_demo.warm import WarmJobs
from onceover_local.stack.process import wait_for

Jobs = Callable[..., SupervisedJob]
"""A starter of jobs: the script in `jobs/`, its arguments, and `stop_after`."""
FIRST, LAST = 10, 200
"""The records that are there before, and all."""
PATIENCE = 120.0


@contextmanager
def open_jobs(folder: Path, warm: WarmJobs) -> Iterator[Jobs]:
    """Yield a starter of jobs on the HDFS of this process's environment; end them after the block."""
    made: list[SupervisedJob] = []

    def start(script: str, *arguments: str, stop_after: AnyStep | None = None) -> SupervisedJob:
        made.append(SupervisedJob(script, arguments, folder / f"{len(made)}.log", warm.launch))
        made[-1].start(stop_after, environment={name: os.environ[name] for name in _TAKEN if name in os.environ})
        return made[-1]

    yield start
    for job in made:
        job.close()


_TAKEN = ("ONCEOVER_HDFS", "ONCEOVER_WEBHDFS", "KRB5_CLIENT_KTNAME", "KRB5CCNAME")


def make_lane(lanes: Lanes, jobs: Jobs) -> Lane:
    """Return a lane whose files exist and are closed."""
    lane = lanes()
    produce(lane, range(FIRST))
    end_ingest(jobs("ingest.py", "--pipeline", lane.name))
    assert len(lane.lines()) == FIRST
    return lane


def land(lanes: Lanes, jobs: Jobs) -> Lane:
    """Return a lane that has landed all records, in two windows that are certified."""
    lane = lanes()
    produce(lane, range(LAST))
    end_ingest(jobs("ingest.py", "--pipeline", lane.name))
    assert lane.detect().certified == 2
    return lane


def land_spoiled(lanes: Lanes, jobs: Jobs) -> tuple[Lane, int | None]:
    """Return such a lane with wrong rows, and the request of their repair."""
    lane = land(lanes, jobs)
    spoil_rows(lane)
    return lane, lane.detect(minutes(0, 10), force=True).request_id


def produce(lane: Lane, numbers: range) -> None:
    lane.produce([event(n % 10, amount=n) for n in numbers])


def start_repair(lane: Lane, jobs: Jobs, request_id: int | None, **how: AnyStep) -> SupervisedJob:
    return jobs("repair.py", "--pipeline", lane.name, "--request", str(request_id), **how)


def start_compaction(lane: Lane, jobs: Jobs, **how: AnyStep) -> SupervisedJob:
    sentence = ("--older-than-ms", "0", "--who", "test", "--why", "a test")
    return jobs("compact.py", "--pipeline", lane.name, *sentence, **how)


def end_ingest(ingest: SupervisedJob) -> None:
    wait_for(lambda: "idle, every window closed" in ingest.read_log(), PATIENCE, "ingest to have read all")
    assert ingest.stop() == 0


def end_well(job: SupervisedJob, again: Callable[[], SupervisedJob] | None = None) -> None:
    """Wait for the job's end. Start it once `again`, as a task's retry does, if it says that a part was away."""
    if again is not None and job.wait(PATIENCE) == TransientError.exit_code:
        job = again()
    assert job.wait(PATIENCE) == 0, job.read_log()


def list_failed(lane: Lane, request_id: int | None) -> tuple[object, ...]:
    assert request_id is not None
    with lane.open() as context:
        return tuple(confirmation.confirm(context, request_id).failed)


def require_counted(lane: Lane, jobs: Jobs) -> None:
    """Do what schedules do; require that no record is lost and each counts once, by the test's own count and by an
    audit."""
    assert set(lane.ids()) == lane.log().keys()
    if request_id := lane.detect().request_id:
        end_well(start_repair(lane, jobs, request_id))
        assert list_failed(lane, request_id) == ()
    right = sum_up(range(LAST))
    assert (lane.aggregates(), count_certified(lane), lane.detect().judged) == (right, 2, 0)
    with lane.open() as context:
        audit_id = audit_store.record_request(context.ledger, lane.name, "log", None, None, "test")
    end_well(jobs("audit.py", "--pipeline", lane.name, "--audit", str(audit_id)))
    with lane.open() as context:
        result = audit_store.read_audit(context.ledger, lane.name, audit_id)[1]
    assert result is not None
    assert result["equal"], result
