"""Records that an open transaction hides: committed ones of other producers, which Kafka has and shows to no reader."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta

import pytest
from confluent_kafka import Producer
from tests.integration.events import event
from tests.integration.kills import Meanwhile
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified, expire

from onceover.cli.doctor import check_kafka
from onceover.config.endpoints import address
from onceover.detection.holes import probe_holes
from onceover.fault_points import Step
from onceover.ingest.report import Progress, format_progress
from onceover.observability.metric_values import read_signals
from onceover_local.stack.process import wait_for

pytestmark = pytest.mark.stack


def open_transaction(topic: str, kafka_partition: int, value: bytes) -> Producer:
    """Return the producer of an open transaction whose record the broker has."""
    producer = Producer({"bootstrap.servers": address("kafka"), "transactional.id": uuid.uuid4().hex, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value, partition=kafka_partition)
    assert producer.flush(30) == 0
    return producer


def ask_doctor(lane: Lane) -> list[tuple[str, str]]:
    found = check_kafka([lane.pipeline])
    return [(each.state, each.what) for each in found if "open transaction" in each.what]


def read_progress(lane: Lane) -> list[tuple[int, int, int | None, bool]]:
    with lane.ledger() as ledger:
        (seen,) = (each for each in read_signals(ledger, timedelta(hours=1)) if each.pipeline == lane.name)
    return [(p.lag, p.hidden, p.first_hidden, p.hidden_since is not None) for p in seen.kafka_partitions.values()]


def test_open_transaction_closes_no_window_and_is_named(lanes: Lanes) -> None:
    lane = lanes(partitions=2)
    for kafka_partition in range(2):
        lane.produce([event(0), event(1)], kafka_partition)
    producers = [open_transaction(lane.topic, p, event(2)) for p in range(2)]
    for kafka_partition in range(2):
        lane.produce([event(3), event(21), event(22)], kafka_partition)
    with lane.driver() as driver:
        turns = [driver.turn() for _ in range(4)]
    assert [sum(each.records for each in turns), turns[-1].every_window_closed, turns[-1].lag] == [
        4,
        False,
        {0: 4, 1: 4},
    ]
    said = format_progress(turns[-1])
    assert "Kafka partition 1: an open transaction hides 4 offsets from 2 on, at least since 20" in said, said
    assert read_progress(lane) == [(4, 4, 2, True)] * 2
    assert lane.detect().judged == 0
    since = turns[-1].hidden[0].since
    with lane.driver() as driver:
        assert driver.turn().hidden[0].since == since, "another driver"
    where = f"--topic {lane.topic} --partition 1"
    ((state, what), _), (_, other) = ask_doctor(lane), ask_doctor(lane)
    assert (state, f"abort {where} --start-offset 2" in other[1]) == ("note", True), other
    lane.query(
        "UPDATE onceover.kafka_partition SET hidden_since = hidden_since - interval '1 hour' WHERE pipeline = %s",
        [lane.name],
    )
    assert [state for state, _ in ask_doctor(lane)] == ["wrong"] * 2, what

    producers[0].commit_transaction(30)
    producers[1].abort_transaction(30)
    wait_for(lambda: not ask_doctor(lane), 20, "the markers")
    done = lane.ingest()
    assert (done[-1].hidden, done[-1].lag) == ([], {0: 0, 1: 0})
    assert read_progress(lane) == [(0, 0, None, False)] * 2
    assert [row[0] for row in lane.aggregates().values()] == [7, 4], "the aborted record counts nowhere"
    detected = lane.detect()
    assert (detected.findings, count_certified(lane)) == ((), 2), "and is no loss"


@pytest.mark.rare
def test_records_deleted_after_the_plan_cost_no_driver(lanes: Lanes) -> None:
    lane = lanes()
    lane.produce([event(n) for n in range(4)])
    stop, done = threading.Event(), list[Progress]()

    def note(progress: Progress) -> None:
        done.append(progress)
        if progress.batch_id is None:
            stop.set()

    with lane.driver(Meanwhile(Step.BEGUN, lambda: expire(lane, 2))) as driver:
        driver.run(stop, threading.Event(), note)
    assert sum(progress.records for progress in done) == 2
    with lane.open() as context:
        assert [(len(gap.offsets), str(gap.reason)) for gap in probe_holes(context)] == [(2, "expired")]
