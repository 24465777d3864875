"""The contract that every offset store keeps, run against the real ones."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from onceover.offset_store import OFFSET_STORES, OffsetStore

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker

pytestmark = pytest.mark.stack

Open = Callable[[], OffsetStore]


@pytest.fixture(params=sorted(OFFSET_STORES))
def open_store(request: pytest.FixtureRequest, broker: Broker) -> Open:
    """Opens one and the same place each time, as another process would."""
    topic, group = broker.create(kafka_partitions=3), f"g-{uuid.uuid4().hex[:8]}"
    return lambda: OFFSET_STORES[request.param](broker.address, topic, group, {})


def test_nothing_is_stored_at_first(open_store: Open) -> None:
    assert open_store().load([0, 1, 2]) == {}


def test_what_was_committed_is_loaded_by_everybody(open_store: Open) -> None:
    assert open_store().commit({0: 5, 2: 0}) == {0: 5, 2: 0}
    assert open_store().load([0, 1, 2]) == {0: 5, 2: 0}


def test_only_what_was_asked_for_is_loaded(open_store: Open) -> None:
    store = open_store()
    store.commit({0: 5, 1: 6})
    assert store.load([1]) == {1: 6}
    assert store.load([]) == {}


def test_a_commit_leaves_other_kafka_partitions_alone(open_store: Open) -> None:
    store = open_store()
    store.commit({0: 5, 1: 6})
    store.commit({1: 7})
    assert store.load([0, 1, 2]) == {0: 5, 1: 7}


def test_a_commit_never_goes_backwards_and_says_what_is_stored(
    open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    store.commit({0: 50, 1: 5})
    with caplog.at_level(logging.WARNING):
        assert store.commit({0: 49, 1: 6}) == {0: 50, 1: 6}
    assert "not committed backwards" in caplog.text
    assert store.load([0, 1]) == {0: 50, 1: 6}


def test_committing_the_same_again_changes_nothing(open_store: Open) -> None:
    store = open_store()
    assert store.commit({0: 5}) == store.commit({0: 5}) == {0: 5}


def test_committing_nothing_is_nothing(open_store: Open) -> None:
    store = open_store()
    assert store.commit({}) == {}
    assert store.load([0, 1, 2]) == {}


def test_offsets_beyond_32_bits_are_kept(open_store: Open) -> None:
    store = open_store()
    store.commit({0: 1 << 40})
    assert store.load([0]) == {0: 1 << 40}
