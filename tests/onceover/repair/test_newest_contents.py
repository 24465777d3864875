"""Which contents Kafka's log holds now: only the log of the cluster that raw was read from says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from onceover.errors import UnreachableError
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import TopicFacts
from onceover.ledger.root import RootRefusedError
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.root_ownership import RootProblem
from onceover.repair import suspicions

SOURCE = KafkaPartition("0a1b2c3d", 0)
RANGES = [OffsetRange(SOURCE, 5, 10)]


class Context:
    """A double of a pipeline's context, whose own topic cannot be opened, or holds [0, 9) but for an offset."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    @contextmanager
    def open_own_topic(self) -> Iterator[object]:
        if self.error:
            raise self.error
        yield SimpleNamespace(facts=lambda: TopicFacts("topic", "id", SOURCE.generation, {0: 0}, {0: 9}))

    def build_source(self, facts: TopicFacts) -> KafkaSource:
        return KafkaSource("none:1", facts.topic, facts.topic_id, unreadable=(OffsetRange(SOURCE, 6, 7),))


def list_held(error: Exception | None = None) -> Any:
    context: Any = Context(error)
    return suspicions._list_held(context, RANGES)


def test_log_of_another_cluster_names_no_newest_content() -> None:
    with pytest.raises(RootRefusedError):
        list_held(RootRefusedError(RootProblem.OTHER_CLUSTER, "raw was read from another cluster"))


def test_newest_content_is_unknown_while_kafka_does_not_answer() -> None:
    assert list_held(UnreachableError("no broker")) is None


def test_offset_that_no_reader_gets_has_no_newest_content() -> None:
    source, pieces = list_held()
    assert [(piece.start, piece.end) for piece in pieces] == [(5, 6), (7, 9)]
    assert source.unreadable, "and what lies before is read with care"
