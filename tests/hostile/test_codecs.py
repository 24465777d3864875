"""Hostile batches on the real broker: ingest lands each record, or names the offsets and goes on with the others."""

from __future__ import annotations

from functools import partialmethod

import pytest
from confluent_kafka import Producer
from tests.integration.cut_logs import damage_batch, produce_compressed
from tests.integration.events import event
from tests.integration.kills import kill_after
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import count_certified
from tests.integration.program import as_json, run, succeed
from tests.kafka_batches import RawRecord, produce_bomb, send, split_gzip

from onceover.config.endpoints import address
from onceover.context import PipelineContext
from onceover.fault_points import Step
from onceover.ledger.log_limits import list_stopped
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import OffsetRange
from onceover.model.record import LARGEST_RECORD
from onceover.model.stopped_range import StopCause
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.largest]
LARGE = {"max.message.bytes": "100000000"}
BOMB = 1_400_000_000
"""Bytes of one value: more than the process that reads it may take."""


def produce(topic: str, value: bytes, codec: str = "none", kafka_partition: int = 0, **more: object) -> None:
    settings = {"bootstrap.servers": address("kafka"), "compression.type": codec, "message.max.bytes": 100_000_000}
    producer = Producer(settings)
    producer.produce(topic, value, partition=kafka_partition, **more)  # type: ignore[arg-type]
    assert producer.flush(60) == 0


@pytest.fixture
def lane(lanes: Lanes) -> Lane:
    made = lanes(partitions=2, topic_config=LARGE)
    for kafka_partition in (0, 1):
        made.produce([event(0), event(1)], kafka_partition)
    return made


def list_waiting(lane: Lane) -> list[OffsetRange]:
    with lane.ledger() as ledger:
        return [each.offsets for each in list_stopped(ledger, lane.name, StopCause.UNREADABLE)]


def check_waits_and_is_skipped(lane: Lane, bad: int, end: int) -> None:
    """Ingest the lane, whose Kafka partition 0 has offsets that no reader gets, and 1 has not; skip them."""
    lane.produce([event(2)], 0)
    lane.turn(4)
    (waiting,) = list_waiting(lane)
    assert (waiting.source.kafka_partition, waiting.start, waiting.end) == (0, bad, end)
    assert set(lane.ids()) == {(0, 0), (0, 1), (1, 0), (1, 1)}, "what lies before, and the other Kafka partition"
    found = [each for each in lane.detect().findings if each.kind is Kind.UNREADABLE]
    assert len(found) == 1
    assert str(waiting) in run("doctor", "--json").stdout
    assert str(waiting) in lane.explain_text(0)
    lane.turn(2)
    window = ("--from", "2026-03-01T12:00Z", "--to", "2026-03-01T12:05Z")
    succeed("accept-loss", lane.name, str(waiting), *window, "--unreadable", "--reason", "INC-9: a bomb")
    lane.ingest()
    assert list_waiting(lane) == []
    assert (0, end) in lane.ids()
    detection = lane.detect()
    assert detection.findings == ()
    if detection.request_id is not None:
        lane.repair(detection.request_id)
    assert count_certified(lane) == 1
    certificate = lane.explain_text(0)
    assert "that Kafka holds and no reader gets" in certificate
    assert lane.audit()["equal"]


def test_record_too_large_for_raw_stops_only_its_partition(lane: Lane) -> None:
    produce(lane.topic, bytes(LARGEST_RECORD + 1), "gzip")
    check_waits_and_is_skipped(lane, 2, 3)


def test_bomb_stops_only_its_partition(lane: Lane) -> None:
    assert produce_bomb(address("kafka"), lane.topic, 0, BOMB) == 2
    check_waits_and_is_skipped(lane, 2, 3)
    assert as_json("pipelines", "check", lane.name, "--sample", "9")["sample"]["records"] == 5, "all but the bomb"
    lane.overwrite(lane.window_file(0), b"\n")
    plan, done = lane.reread(0)
    assert {str(each.offsets).partition("-")[2] for each in plan.held} == {"0:0-2", "0:3-4", "1:0-2"}
    assert done is not None
    assert len(done.confirmed) == 1, "what lies before the bomb was read again"


def test_batch_without_end_stops_only_its_partition(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = partialmethod(PipelineContext.build_source, stall_seconds=2)
    monkeypatch.setattr(PipelineContext, "build_source", impatient)
    assert send(address("kafka"), lane.topic, 0, split_gzip([RawRecord(b"k", event(2))] * 3, 30)) == 2
    check_waits_and_is_skipped(lane, 2, 5)


@pytest.mark.largest
def test_damaged_batch_stops_only_its_partition(lane: Lane, stack: Stack) -> None:
    kill_after(lane, Step.APPENDED)  # its bytes are searched for the offsets before these are accepted as lost
    produce_compressed(lane.topic, 3)
    damage_batch(stack, lane.topic)
    check_waits_and_is_skipped(lane, 2, 5)
