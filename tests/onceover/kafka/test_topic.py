from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Message, Uuid

from onceover.errors import TerminalError
from onceover.kafka import Topic, derive_generation

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker


def test_generation_is_the_head_of_the_topic_id() -> None:
    assert derive_generation("3QQ4iTqxTMuP8fUEtkphFQ") == "dd043889"
    assert derive_generation("-_-_-_-_-_-_-_-_-_-_-w") == "fbffbffb"


def test_topic_without_an_id_is_refused_with_the_remedy() -> None:
    with pytest.raises(TerminalError, match=r"give topics no ID.*upgrade them to Kafka 2\.8"):
        derive_generation(str(Uuid(0, 0)))


@pytest.mark.stack
def test_empty_topic_begins_and_ends_at_zero_everywhere(broker: Broker) -> None:
    topic = broker.create(kafka_partitions=3)
    facts = broker.facts(topic)
    assert facts.earliest == facts.end == {0: 0, 1: 0, 2: 0}
    assert facts.generation == derive_generation(facts.topic_id)


@pytest.mark.stack
def test_earliest_moves_with_retention_and_end_with_records(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"a", b"b", b"c"])
    broker.expire(topic, before=2)
    facts = broker.facts(topic)
    assert (facts.earliest, facts.end) == ({0: 2}, {0: 3})


@pytest.mark.stack
def test_open_transaction_is_beyond_the_end_under_read_committed(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"before"])
    with broker.transaction(topic, [b"open", b"open"]) as open_transaction:
        assert broker.facts(topic, "read_committed").end == {0: 1}
        assert broker.facts(topic, "read_uncommitted").end == {0: 3}
        open_transaction.commit_transaction(30)
    broker.wait_for_end(topic, 4)  # the marker takes an offset


@pytest.mark.stack
def test_recreated_topic_is_another_generation(broker: Broker, topic: str) -> None:
    client = Topic(broker.address, topic, "read_committed", {})
    before = client.facts()
    broker.recreate(topic)
    assert client.facts().generation != before.generation


@pytest.mark.stack
def test_unknown_topic_is_an_error_and_is_not_created(broker: Broker) -> None:
    for _ in range(2):
        with pytest.raises(TerminalError, match=r"'no-such-topic', it does not exist; create it"):
            Topic(broker.address, "no-such-topic", "read_committed", {}).facts()


@pytest.mark.stack
def test_producers_clock_may_be_an_hour_ahead(broker: Broker, topic: str) -> None:
    now_ms = int(time.time() * 1000)
    refused: list[int] = []

    def report(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error.code())

    for stamp in (1, now_ms + 3_000_000, now_ms + 7_200_000, 9_999_999_999_999):
        broker.produce(topic, [b"v"], timestamp=stamp, on_delivery=report)
    assert refused == [KafkaError.INVALID_TIMESTAMP] * 2
    assert broker.facts(topic).end == {0: 2}
    with closing(Topic(broker.address, topic, "read_committed", {})) as opened:
        assert opened.policy().ahead_ms == 3_600_000
