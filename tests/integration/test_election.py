"""An unclean election on two brokers: a replica without some records that landed leads, and others take their IDs."""

from __future__ import annotations

import pytest
from tests.integration.events import event
from tests.integration.extras import repair
from tests.integration.lane import Lanes
from tests.integration.replicated_kafka import FOLLOWER, LEADER, open_replicated_kafka

from onceover.model.finding_kinds import Kind
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]
UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


@pytest.mark.largest
def test_elected_replica_that_is_behind_is_found_and_both_count(
    lanes: Lanes, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_replicated_kafka(stack.local / "replicated") as kafka:
        monkeypatch.setenv("ONCEOVER_KAFKA", kafka.address)
        lane = lanes(topic_config=UNCLEAN, brokers=(LEADER, FOLLOWER), offset_store="postgres")
        kafka.wait_for_replicas(lane.topic, LEADER, {LEADER, FOLLOWER})
        lane.land([event(n, amount=n) for n in range(3)])
        kafka.follower.process.stop(kafka.follower.stop_s)
        kafka.wait_for_replicas(lane.topic, LEADER, {LEADER})
        lane.land([event(n, amount=n) for n in (3, 5, 6)])
        assert lane.detect().certified == 2
        assert len(lane.log()) == 6

        kafka.leader.kill()
        kafka.follower.start()
        kafka.wait_for_replicas(lane.topic, FOLLOWER, {FOLLOWER})
        assert len(lane.log()) == 3, "the elected replica lacks what landed"
        lane.produce([event(n, amount=70 + n) for n in (3, 11, 12, 13)])
        (finding,) = lane.detect().findings
        assert finding.kind is Kind.TRUNCATED
        lane.ingest()
        repair(lane)
        assert lane.aggregates() == {(0.0, "a"): (5, 79, 73), (5.0, "a"): (2, 11, 6), (10.0, "a"): (3, 246, 83)}
        assert {lane.explain(at)["state"] for at in (0, 5, 10)} == {"certified"}
