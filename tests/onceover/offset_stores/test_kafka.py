from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions

from onceover.errors import BusyError, TerminalError, UnreachableError
from onceover.offset_stores.kafka import KafkaOffsetStore

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker

pytestmark = pytest.mark.stack


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


def test_kafkas_own_tools_see_the_group_and_its_offsets(broker: Broker, topic: str, group: str) -> None:
    KafkaOffsetStore(broker.address, topic, group, {}).save({0: 7}, "topic-a")
    assert group in {g.group_id for g in broker.admin.list_consumer_groups().result().valid}
    answer = broker.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    assert [(p.topic, p.partition, p.offset) for p in answer[group].result().topic_partitions] == [(topic, 0, 7)]


def test_group_with_a_consumer_is_busy(broker: Broker, topic: str, group: str) -> None:
    stranger = Consumer({"bootstrap.servers": broker.address, "group.id": group, "log_level": 0})
    stranger.subscribe([topic])
    try:
        while not stranger.assignment():
            stranger.poll(0.1)
        with pytest.raises(BusyError, match="give the pipeline its own group"):
            KafkaOffsetStore(broker.address, topic, group, {}).save({0: 7}, "topic-a")
    finally:
        stranger.close()


def test_missing_kafka_partition_is_an_error(broker: Broker, topic: str, group: str) -> None:
    with pytest.raises(TerminalError, match="does not exist"):
        KafkaOffsetStore(broker.address, topic, group, {}).save({9: 1}, "topic-a")


@pytest.mark.rare
@pytest.mark.faults
def test_restarted_broker_keeps_the_offsets(broker: Broker, topic: str, group: str) -> None:
    store = KafkaOffsetStore(broker.address, topic, group, {})
    store.save({0: 7}, "topic-a")
    broker.restart()
    assert store.load([0]).offsets == {0: 7}
    store.save({0: 8}, "topic-a")
    assert store.load([0]).offsets == {0: 8}


@pytest.mark.rare
@pytest.mark.faults
def test_frozen_broker_fails_a_commit_in_time_and_then_recovers(broker: Broker, group: str) -> None:
    topic = broker.create(2)
    store = KafkaOffsetStore(broker.address, topic, group, {}, timeout=2)
    store.save({0: 7}, "topic-a")
    with broker.frozen():
        begun = time.monotonic()
        with pytest.raises(UnreachableError, match="cannot load the offsets"):
            store.load([0])
        with pytest.raises(UnreachableError, match="cannot commit the offsets"):
            store.save({0: 8}, "topic-a")
        store.close()
        assert time.monotonic() - begun < 8
    again = KafkaOffsetStore(broker.address, topic, group, {})
    again.save({1: 9}, "topic-a")
    offsets = again.load([0, 1]).offsets
    assert offsets[1] == 9
    assert offsets[0] in (7, 8), "the commit without an answer may still arrive"
