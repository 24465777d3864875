"""A topic that is deleted and recreated, also in the middle of a batch, and Kafka partitions that were added."""

from __future__ import annotations

import json

import pytest
from tests.integration.events import event
from tests.integration.kills import Meanwhile
from tests.integration.lane import Lanes
from tests.integration.planted_failures import add_partitions, count_certified, list_gaps, recreate
from tests.integration.test_holes import accept

from onceover.errors import TransientError
from onceover.fault_points import Step
from onceover.ledger import frontiers
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(5, id="shorter", marks=pytest.mark.rare),
        pytest.param(10, id="equal"),
        pytest.param(15, id="longer", marks=pytest.mark.rare),
    ],
)
def test_recreated_topic_is_a_new_generation_of_other_ids(lanes: Lanes, again: int) -> None:
    lane = lanes()
    lane.land([event(n, "old") for n in range(10)])
    recreate(lane)
    lane.produce([event(n, "new") for n in range(again)])
    done = lane.ingest()
    assert sum(p.records for p in done) == again, "from the new log's start, whatever was stored for the old one"
    ids = [(x.record.source, x.record.offset) for _, x in lane.lines()]
    assert len(ids) == len(set(ids)) == 10 + again
    assert len({source.generation for source, _ in ids}) == 2
    lane.detect()
    counts = {key: row[0] for key, row in lane.aggregates().items()}
    expected = {(m, "old"): 5 for m in (0.0, 5.0)} | {(float(m), "new"): 5 for m in range(0, again, 5)}
    assert counts == expected
    assert count_certified(lane) == len({minute for minute, _ in expected})


@pytest.mark.rare
def test_topic_recreated_within_a_batch_is_noticed_in_time(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n, "old") for n in range(5)])

    def recreate_topic() -> None:
        recreate(lane)
        lane.produce([event(n, "new") for n in range(4)])

    with lane.driver(Meanwhile(Step.BEGUN, recreate_topic, 2)) as driver:
        driver.turn()
        lane.produce([event(n, "gone") for n in range(3)])
        with pytest.raises(TransientError, match="recreated"):
            driver.turn()
        assert {"old"} == {json.loads(x.record.value or b"")["kind"] for _, x in lane.lines()}, (
            "nothing of the plan was appended"
        )
        assert driver.turn().records == 4
        driver.turn()
    assert list_gaps(lane) == [(5, 8, "expired")], "what was not read of the old topic is lost, and said"
    detection = lane.detect()
    assert (detection.certified, len(detection.findings)) == (0, 1)
    old, new = (x.record.source.generation for _, x in (lane.lines()[0], lane.lines()[-1]))
    assert old != new
    accept(lane, OffsetRange(KafkaPartition(old, 0), 5, 8))
    lane.ingest()
    lane.detect()
    assert count_certified(lane) == 1


@pytest.mark.rare
def test_added_kafka_partition_counts_from_its_first_record(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n) for n in range(5)])
    with lane.driver() as driver:
        driver.turn()
        add_partitions(lane, 3)
        for kafka_partition in (1, 2):
            lane.produce([event(n) for n in range(5)], kafka_partition)
        for _ in range(20):
            if len(driver.turn().lag) == 3 and driver.turn().lag == {0: 0, 1: 0, 2: 0}:
                break
    lane.ingest()
    with lane.ledger() as ledger:
        known = frontiers.read_progress(ledger, lane.name, lane.source().generation)
    assert sorted(known.values()) == [(5, 5)] * 3
    assert lane.aggregates() == {(0.0, "a"): (15, 15, 1)}
    assert lane.detect().certified == 1
    assert lane.window_file(0).endswith("1200.log")
