"""Detection that cannot compare the log: what was never compared is not certified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from tests.onceover.ledger.driven_pipeline import SOURCE
from tests.onceover.ledger.test_log_cuts import ProbeOfEpochTwo, land
from tests.onceover.ledger.test_log_cuts import connection as connection

from onceover.detection.cuts import compare_log
from onceover.errors import UnreachableError
from onceover.kafka import TopicFacts
from onceover.kafka.reader import KafkaSource
from onceover.ledger import log_cuts
from onceover.ledger.database import Connection

pytestmark = [pytest.mark.stack, pytest.mark.rare]
FACTS = TopicFacts("topic", "id", SOURCE.generation, {0: 0}, {0: 60}, {0: 2})


def open_context(connection: Connection, error: Exception | None = None) -> Any:
    @contextmanager
    def open_own_topic(timeout: float) -> Iterator[object]:
        if error:
            raise error
        yield SimpleNamespace(facts=lambda: FACTS)

    def build_source(facts: TopicFacts, stall_seconds: float) -> KafkaSource:
        return KafkaSource("none:1", "topic", "id")

    return SimpleNamespace(ledger=connection, name="cuts", open_own_topic=open_own_topic, build_source=build_source)


def test_uncompared_log_certifies_nothing_beside_ingest(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_cuts, "LogProbe", ProbeOfEpochTwo)
    land(connection, 0, 40, (2, 0))
    connection.execute(
        "INSERT INTO onceover.driver (pipeline, epoch, owner, holder, expires_at) "
        "VALUES ('cuts', 1, 'me', %s, now() + interval '1 minute')",
        [uuid4()],
    )
    assert not compare_log(open_context(connection)), "ingest runs, and has not compared it yet"
    assert not compare_log(open_context(connection, UnreachableError("no broker")))
    connection.execute("UPDATE onceover.kafka_partition SET compared_epoch = 1")
    assert compare_log(open_context(connection)), "ingest compares what a new leader brings"
    assert compare_log(open_context(connection, UnreachableError("no broker")))
    connection.execute("UPDATE onceover.kafka_partition SET compared_epoch = NULL")
    connection.execute("UPDATE onceover.driver SET expires_at = now() - interval '1 minute'")
    assert compare_log(open_context(connection)), "detection compares it itself"
