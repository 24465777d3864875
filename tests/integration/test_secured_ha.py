"""An HDFS of two NameNodes that asks for tickets: parts of it and jobs die while a pipeline lands and is repaired."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.cluster_jobs import Jobs
from tests.integration.foreign import METERS, PARTITIONS, PORTION, SOME, Town
from tests.integration.ha_cluster import HaCluster, open_ha_cluster
from tests.integration.job_fixtures import jobs, spark_session
from tests.integration.job_runs import end_well, list_failed
from tests.integration.lane import Lanes
from tests.integration.secured_hdfs import shorten_tickets

from onceover.fault_points import RepairStep, Step
from onceover_local.stack import Stack

__all__ = ["jobs", "spark_session"]
pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.largest]
TICKET_SECONDS = 20


@pytest.fixture(scope="module")
def cluster(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HaCluster]:
    """The cluster, for which all processes of jobs take tickets that end soon."""
    with open_ha_cluster(tmp_path_factory.mktemp("both"), is_secured=True) as found:
        assert found.kdc is not None
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("KRB5_CONFIG", str(shorten_tickets(found.kdc, TICKET_SECONDS)))
            yield found


def test_each_record_counts_once_with_tickets_and_failovers(lanes: Lanes, jobs: Jobs, cluster: HaCluster) -> None:
    town = Town(lanes(METERS, partitions=PARTITIONS), jobs)
    town.produce()
    for step in (Step.APPENDED, Step.INCREMENTED, Step.LANDED):
        town.kill_ingest(step)
    ingest = town.start_ingest()
    town.land(ingest, SOME)
    kill_active(cluster)
    town.land(ingest, SOME)
    cluster.revive()
    cluster.datanodes[0].kill()
    town.land(ingest, PORTION)
    cluster.revive()
    town.land(ingest, SOME)
    ingest.kill()
    town.end_ingest(town.start_ingest())

    request_id = town.lane.detect().request_id
    town.start_repair(request_id, RepairStep.STAGED).kill()
    repair = town.start_repair(request_id, RepairStep.CLAIMED)
    kill_active(cluster)
    repair.resume()
    end_well(repair, lambda: town.start_repair(request_id))
    assert list_failed(town.lane, request_id) == ()
    town.require_counted()


def kill_active(cluster: HaCluster) -> None:
    cluster.namenodes[cluster.wait_for_active()].kill()
