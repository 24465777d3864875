"""Which contents Kafka's log holds now: only the log of the cluster that raw was read from says it."""

from __future__ import annotations

from typing import Any

import pytest

from onceover.errors import UnreachableError
from onceover.ledger.root import RootRefusedError
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.root_ownership import RootProblem
from onceover.repair import suspicions

RANGES = [OffsetRange(KafkaPartition("0a1b2c3d", 0), 5, 10)]


class Context:
    """A double of a pipeline's context, whose own topic cannot be opened."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def open_own_topic(self) -> object:
        raise self.error


def list_held(error: Exception) -> object:
    context: Any = Context(error)
    return suspicions._list_held(context, RANGES)


def test_log_of_another_cluster_names_no_newest_content() -> None:
    with pytest.raises(RootRefusedError):
        list_held(RootRefusedError(RootProblem.OTHER_CLUSTER, "raw was read from another cluster"))


def test_newest_content_is_unknown_while_kafka_does_not_answer() -> None:
    assert list_held(UnreachableError("no broker")) is None
