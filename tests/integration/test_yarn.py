"""The same jobs on a YARN of one node: executors, applications and the ResourceManager die, and its queue is full."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence

import psutil
import pytest
from tests.integration.cluster_jobs import PATIENCE, Jobs, end_well, ingest_all, start_repair, wait_until
from tests.integration.compaction import spoil_rows
from tests.integration.events import count_events, event, moment
from tests.integration.foreign import METERS, PARTITIONS, SOME, Town
from tests.integration.job_fixtures import spark_session
from tests.integration.job_runs import list_failed
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, minutes
from tests.integration.yarn_cluster import YarnCluster
from tests.integration.yarn_fixtures import jobs, running, yarn
from tests.listening import LOOPBACKS, list_heard
from tests.spark_door import RPC_FAILURE, ask

from onceover.errors import SparkLostError
from onceover.fault_points import AnyStep, RepairStep, Step
from onceover_demo.supervised import SupervisedJob
from onceover_local.stack.ports import LOOPBACK

__all__ = ["jobs", "running", "spark_session", "yarn"]
pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.rare]
WINDOWS, RECORDS = 6, 60
VALUES = [event(n % (5 * WINDOWS), "ab"[n % 2], n) for n in range(RECORDS)]
SECRET = "hush-of-the-driver"
STARTING, NO_EXECUTORS = "waiting for yarn to start Spark's application", "it waits for executors"


def test_yarn_executors_lost_after_appends_append_again(
    lanes: Lanes, jobs: Jobs, yarn: YarnCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEOVER_KAFKA_SASL_PASSWORD", SECRET)
    lane, records, windows = lanes(partitions=2), 400, 100
    values = [event(5 * (n % windows), amount=n) for n in range(records)]
    lane.produce(values[: records // 2], 0)
    lane.produce(values[records // 2 :], 1)
    ingest = start_ingest(jobs, lane)
    first, end = (moment(5 * at) for at in (0, windows))
    wait_until(ingest, lambda: len(lane.files().list_window_files(first, end)) > windows // 10)
    require_hidden(yarn)
    yarn.kill_executors()
    appended = len(lane.lines())
    assert 0 < appended < records
    end_ingest(ingest)
    assert len(lane.lines()) == records + appended, "what they had appended is there twice"

    end_well(start_repair(jobs, lane, lane.detect().request_id))
    require_counted(lane, values, windows)
    assert yarn.list_ends(lane) == [("ingest", "SUCCEEDED"), ("repair", "SUCCEEDED")]


@pytest.mark.largest
@pytest.mark.parametrize("step", [RepairStep.CLAIMED, RepairStep.STAGED])
def test_yarn_repair_outlives_all_its_executors(lanes: Lanes, jobs: Jobs, yarn: YarnCluster, step: RepairStep) -> None:
    lane, request_id = land_spoiled(lanes, jobs)
    repair = hold(jobs("repair.py", "--pipeline", lane.name, "--request", str(request_id)), step)
    yarn.kill_executors()
    repair.resume()
    end_well(repair)
    require_counted(lane, VALUES, WINDOWS)


def kill_application(yarn: YarnCluster) -> None:
    yarn.end_application(yarn.list_applications()[-1]["id"])


def lose_state(yarn: YarnCluster) -> None:
    """Kill the ResourceManager, and start another that knows no application."""
    yarn.kill_resources()
    shutil.rmtree(yarn.state)
    yarn.start()


@pytest.mark.largest
@pytest.mark.parametrize("end", [kill_application, lose_state])
def test_application_ended_by_yarn_blames_no_window(
    lanes: Lanes, jobs: Jobs, yarn: YarnCluster, end: Callable[[YarnCluster], None]
) -> None:
    lane, request_id = land_spoiled(lanes, jobs)
    repair = hold(jobs("repair.py", "--pipeline", lane.name, "--request", str(request_id)), RepairStep.CLAIMED)
    end(yarn)
    repair.resume()
    assert repair.wait(PATIENCE) == SparkLostError.exit_code, repair.read_log()
    assert "the cluster has ended Spark's application" in repair.read_last_line()
    assert {row["tries"] for row in read_windows(lane)} == {0}
    end_well(start_repair(jobs, lane, request_id))
    require_counted(lane, VALUES, WINDOWS)


@pytest.mark.largest
def test_ingest_whose_application_yarn_ends_loses_nothing(lanes: Lanes, jobs: Jobs, yarn: YarnCluster) -> None:
    lane = lanes()
    lane.produce(VALUES)
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.BEGUN)
    kill_application(yarn)
    ingest.resume()
    assert ingest.wait(PATIENCE) == SparkLostError.exit_code, ingest.read_log()
    ingest_all(jobs, lane)
    require_counted(lane, VALUES, WINDOWS)


@pytest.mark.largest
def test_driver_on_yarn_killed_in_mid_batch_is_replaced(lanes: Lanes, jobs: Jobs, yarn: YarnCluster) -> None:
    lane = lanes()
    lane.produce(VALUES)
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.INCREMENTED)
    ingest.kill()
    ingest_all(jobs, lane)
    assert lane.aggregates() != count_events(VALUES), "counted twice"
    end_well(start_repair(jobs, lane, lane.detect().request_id))
    require_counted(lane, VALUES, WINDOWS)


@pytest.mark.largest
def test_jobs_go_on_over_a_restart_of_the_resourcemanager(lanes: Lanes, jobs: Jobs, yarn: YarnCluster) -> None:
    lane = lanes()
    lane.produce(VALUES[:20])
    ingest = hold(jobs("ingest.py", "--pipeline", lane.name), Step.BEGUN)
    yarn.kill_resources()
    ingest.resume()
    wait_until(ingest, lambda: len(lane.lines()) == 20)
    yarn.kill_executors()
    lane.produce(VALUES[20:])
    wait_until(ingest, lambda: "it waits for executors" in ingest.read_log())
    yarn.start()
    wait_until(ingest, lambda: set(lane.ids()) == lane.log().keys())
    end_ingest(ingest)
    spoil_rows(lane)
    end_well(start_repair(jobs, lane, lane.detect(minutes(0, 60), force=True).request_id))
    require_counted(lane, VALUES, WINDOWS)
    assert yarn.list_ends(lane) == [("ingest", "SUCCEEDED"), ("repair", "SUCCEEDED")], "no other application"


@pytest.mark.largest
def test_each_record_counts_once_as_parts_of_yarn_die(lanes: Lanes, jobs: Jobs, yarn: YarnCluster) -> None:
    town = Town(lanes(METERS, partitions=PARTITIONS), jobs)
    town.produce()
    for step in (Step.APPENDED, Step.INCREMENTED):
        town.kill_ingest(step)
    ingest = town.start_ingest()
    town.land(ingest, SOME)
    for end in (yarn.kill_executors, yarn.kill_resources, yarn.start):
        end()
        town.land(ingest, SOME)
    ingest.kill()
    town.end_ingest(town.start_ingest())

    request_id = town.lane.detect().request_id
    town.start_repair(request_id, RepairStep.STAGED).kill()
    repair = town.start_repair(request_id, RepairStep.CLAIMED)
    yarn.kill_executors()
    yarn.kill_resources()
    repair.resume()
    yarn.start()
    end_well(repair)
    assert list_failed(town.lane, request_id) == ()
    town.require_counted()


@pytest.mark.largest
@pytest.mark.parametrize(("taken", "said"), [("3", STARTING), ("2", NO_EXECUTORS)])
def test_full_queue_is_waited_for(lanes: Lanes, jobs: Jobs, yarn: YarnCluster, taken: str, said: str) -> None:
    """Four containers fit: an application's master and three executors, or two masters and two executors."""
    lane, request_id = land_spoiled(lanes, jobs)
    yarn.write_defaults({"spark.executor.instances": taken})
    other = lanes()
    other.produce(VALUES)
    holder = start_ingest(jobs, other)
    wait_until(holder, lambda: len(yarn.list_executors()) == int(taken))
    repair = start_repair(jobs, lane, request_id)
    wait_until(repair, lambda: repair.read_log().count(said) > 1)
    assert {row["tries"] for row in read_windows(lane)} == {0}
    end_ingest(holder)
    end_well(repair)
    require_counted(lane, VALUES, WINDOWS)


@pytest.mark.largest
def test_unknown_queue_is_named_in_one_line(lanes: Lanes, jobs: Jobs, yarn: YarnCluster) -> None:
    yarn.write_defaults({"spark.yarn.queue": "nowhere"})
    lane = lanes()
    ingest = start_ingest(jobs, lane)
    assert ingest.wait(PATIENCE) == SparkLostError.exit_code, ingest.read_log()
    assert ingest.read_last_line().startswith("ingest: yarn did not start Spark's application: ")
    assert "to unknown queue: nowhere" in ingest.read_last_line()


def hold(job: SupervisedJob, step: AnyStep) -> SupervisedJob:
    job.start(step)
    job.wait_until_held(PATIENCE)
    return job


def start_ingest(jobs: Jobs, lane: Lane) -> SupervisedJob:
    ingest = jobs("ingest.py", "--pipeline", lane.name)
    ingest.start()
    return ingest


def end_ingest(ingest: SupervisedJob) -> None:
    wait_until(ingest, lambda: "idle, every window closed" in ingest.read_log())
    assert ingest.stop() == 0, ingest.read_log()


def land_spoiled(lanes: Lanes, jobs: Jobs) -> tuple[Lane, int | None]:
    """Return a lane with wrong rows, and the request of their repair. It landed without the cluster."""
    lane = lanes()
    lane.produce(VALUES)
    ingest = jobs("ingest.py", "--pipeline", lane.name)
    ingest.start(environment={"ONCEOVER_SPARK": "local[2]"})
    end_ingest(ingest)
    spoil_rows(lane)
    return lane, lane.detect(minutes(0, 60), force=True).request_id


def read_windows(lane: Lane) -> Sequence[dict[str, object]]:
    return lane.query("SELECT tries FROM onceover.window WHERE pipeline = %s", [lane.name])


def require_counted(lane: Lane, values: Sequence[bytes], windows: int) -> None:
    """Require that no record is lost and each counts once, by the test's own count."""
    assert set(lane.ids()) == lane.log().keys()
    assert lane.detect().request_id is None
    assert (lane.aggregates(), count_certified(lane), lane.detect().judged) == (count_events(values), windows, 0)


def require_hidden(yarn: YarnCluster) -> None:
    """Require that all that runs for YARN listens on loopback, executors refuse a stranger, and no list or log has a
    secret of the driver: YARN writes a container's environment into its log."""
    containers = yarn.list_containers()
    assert len(containers) == 3
    servers = [each.process.find_pid() for each in (yarn.resources, yarn.node)]
    heard = list_heard(pid for pid in (*servers, *(each.pid for each in containers)) if pid is not None)
    assert len(heard) > len(containers)
    assert set(heard) <= LOOPBACKS
    doors = [each for executor in yarn.list_executors() for each in executor.net_connections("inet")]
    for door in (each.laddr.port for each in doors if each.status == psutil.CONN_LISTEN):
        kind, answer = ask(LOOPBACK, door, b"\0" * 16)
        assert (kind, "SASL" in answer) == (RPC_FAILURE, True)
    lines = [each.info["cmdline"] or () for each in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if any(SECRET in part for part in line)]
    shown = [json.dumps(yarn.list_applications()), *(each.read_text() for each in yarn.list_logs())]
    assert len(shown) > 2
    assert not [text for text in shown if SECRET in text]
