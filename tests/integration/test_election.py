"""An unclean election on two brokers: a replica without some records that landed leads, and others take their IDs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.integration.cut_logs import repair
from tests.integration.lane import NOON_MS, Lane, event
from tests.integration.planted_failures import minutes
from tests.integration.program import run
from tests.integration.replicated_kafka import FOLLOWER, LEADER, open_replicated_kafka

from onceover.model.finding_kinds import Kind
from onceover.model.window import format_moment, from_ms
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]
UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


@pytest.mark.largest
def test_elected_replica_that_is_behind_is_found_and_decided(
    lanes: Callable[..., Lane], stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_replicated_kafka(stack.local / "replicated") as kafka:
        monkeypatch.setenv("ONCEOVER_KAFKA", kafka.address)
        lane = lanes(topic_config=UNCLEAN, brokers=(LEADER, FOLLOWER), offset_store="postgres")
        kafka.wait_for_replicas(lane.topic, LEADER, {LEADER, FOLLOWER})
        lane.produce([event(n, amount=n) for n in range(3)])
        lane.ingest()
        kafka.follower.process.stop(kafka.follower.stop_s)
        kafka.wait_for_replicas(lane.topic, LEADER, {LEADER})
        lane.produce([event(n, amount=n) for n in (3, 5, 6)])
        lane.ingest()
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
        assert "certified" not in {lane.explain(at)["state"] for at in (0, 5, 10)}, "three IDs have two contents each"
        for at in (0, 5):
            window = format_moment(from_ms(NOON_MS + at * 60_000))
            decided = run("decide", lane.name, window, "all", "--keep", "newest", "--reason", "the log is right")
            assert decided.returncode == 0, decided.stderr
        lane.repair(lane.detect(minutes(0, 15)).request_id or 0)
        assert lane.aggregates() == {(0.0, "a"): (4, 76, 73), (10.0, "a"): (3, 246, 83)}, "what the log holds now"
        assert {lane.explain(at)["state"] for at in (0, 5, 10)} == {"certified"}
