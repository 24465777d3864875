"""Protection of every store from another topic's values, another pipeline's place, and moving back."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from onceover.errors import UsageError
from onceover.ledger import drivers
from onceover.ledger.database import Connection
from onceover.offset_stores import CorruptOffsetsError
from onceover.offset_stores.none import NoOffsetStore
from onceover.offset_stores.tracker import OffsetTracker

pytestmark = pytest.mark.stack
A, B = "topic-a", "topic-b"
Start = Callable[..., OffsetTracker]


@contextmanager
def register(connection: Connection) -> Iterator[str]:
    name = f"p{uuid.uuid4().hex[:8]}"
    connection.execute("INSERT INTO onceover.pipeline (name, contract_version) VALUES (%s, 1)", [name])
    yield name
    for table, column in (("offset_place", "pipeline"), ("driver", "pipeline"), ("pipeline", "name")):
        connection.execute(f"DELETE FROM onceover.{table} WHERE {column} = %s", [name])


@pytest.fixture
def pipeline(connection: Connection) -> Iterator[str]:
    with register(connection) as name:
        yield name


@pytest.fixture
def other(connection: Connection) -> Iterator[str]:
    with register(connection) as name:
        yield name


@pytest.fixture
def store() -> NoOffsetStore:
    """Return a store without a field for the topic ID, as most are; the drivers of a test share it."""

    class WithoutId(NoOffsetStore):
        def save(self, offsets: object, topic_id: str) -> None:
            super().save(offsets, topic_id)  # type: ignore[arg-type]
            self._held = type(self._held)(self._held.offsets)

    return WithoutId(uuid.uuid4().hex, "t")


@pytest.fixture
def start(connection: Connection, pipeline: str, store: NoOffsetStore) -> Start:
    """Return what a driver of the pipeline does first: it makes a tracker of the store."""
    return lambda name=pipeline: OffsetTracker(connection, name, "kafka", store)


def test_offsets_of_an_earlier_topic_incarnation_are_not_used(start: Start, store: NoOffsetStore) -> None:
    first = start()
    assert first.load(A, [0, 1]) == {}
    first.begin(A, {0: 0, 1: 0})
    first.commit({0: 7})
    assert start().load(A, [0, 1]) == {0: 7, 1: 0}
    assert start().load(B, [0, 1]) == {}, "7 may be within the new log"
    killed_here = start()
    assert killed_here.load(B, [0, 1]) == {}
    killed_here.begin(B, {0: 0, 1: 0})
    assert store.load([0, 1]).offsets == {0: 0, 1: 0}
    assert start().load(B, [0, 1]) == {0: 0, 1: 0}


def test_offset_saved_without_its_note_is_not_believed(start: Start, store: NoOffsetStore) -> None:
    first = start()
    first.load(A, [0])
    first.begin(A, {0: 5})
    store.save({0: 0}, B)  # as by the next generation's first driver, killed before its note
    assert start().load(B, [0]) == {}


def test_kafka_partition_new_to_the_store_is_kept_from_the_start(start: Start, store: NoOffsetStore) -> None:
    offsets = start()
    offsets.load(A, [0])
    offsets.begin(A, {0: 5})
    assert offsets.load(A, [0, 1]) == {0: 5}
    offsets.begin(A, {0: 5, 1: 0})
    assert store.load([0, 1]).offsets == {0: 5, 1: 0}


def test_offsets_from_before_the_first_start_are_used(start: Start, store: NoOffsetStore) -> None:
    store.save({0: 40}, "")
    assert start().load(A, [0, 1]) == {0: 40}


def test_only_a_truncated_log_sets_offsets_back(
    start: Start, store: NoOffsetStore, caplog: pytest.LogCaptureFixture
) -> None:
    offsets = start()
    offsets.load(A, [0, 1])
    offsets.begin(A, {0: 50, 1: 5})
    with caplog.at_level(logging.WARNING):
        offsets.commit({0: 49, 1: 6})
    assert "not committed backwards" in caplog.text
    assert store.load([0, 1]).offsets == {0: 50, 1: 6}
    offsets.load(A, [0, 1])
    offsets.begin(A, {0: 30, 1: 5})
    assert store.load([0, 1]).offsets == {0: 30, 1: 5}


def test_pipelines_never_share_a_place(
    connection: Connection, pipeline: str, other: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onceover.offset_stores.tracker.names", lambda: [pipeline, other])
    start(other).load(A, [0])
    with pytest.raises(UsageError, match=f"pipeline {other} keeps its offsets there; give {pipeline} a group"):
        start().load(A, [0])
    monkeypatch.setattr("onceover.offset_stores.tracker.names", lambda: [pipeline])
    epoch = drivers.acquire(connection, other, "an ingest of another host")
    with pytest.raises(UsageError, match="keeps its offsets there"):
        start().load(A, [0])
    drivers.end_epoch(connection, epoch)
    assert start().load(A, [0]) == {}, "the other pipeline no longer exists"


def test_abandoned_place_is_free_and_offsets_keep_their_topic(
    connection: Connection, pipeline: str, other: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onceover.offset_stores.tracker.names", lambda: [pipeline, other])
    earlier = start(other)
    earlier.load(A, [0])
    earlier.begin(A, {0: 7})
    OffsetTracker(connection, other, "hdfs", NoOffsetStore(other, "t")).load(A, [0])  # its offsets are elsewhere now
    assert start().load(B, [0]) == {}, "7 is not of topic B, for any pipeline"


def test_foreign_value_is_refused_with_its_remedy(connection: Connection, pipeline: str, store: NoOffsetStore) -> None:
    store.save({7: 40}, "")
    with pytest.raises(
        CorruptOffsetsError, match="Kafka partition 7, which the topic does not have; inspect it with `onceover off"
    ):
        OffsetTracker(connection, pipeline, "zookeeper", store).load(A, [0])
