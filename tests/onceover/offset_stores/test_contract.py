"""The contract that every offset store keeps, run against the real servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from onceover.model.pipeline import OFFSET_STORES
from onceover.offset_stores import OffsetStore
from onceover.offset_stores.none import NoOffsetStore

if TYPE_CHECKING:
    from tests.onceover.offset_stores.conftest import Place

pytestmark = pytest.mark.stack
ALL = [0, 1, 2, 3]
KINDS = sorted(set(OFFSET_STORES) - {"none"})
SLOW = ("checkpoint", "hbase")  # their servers, and Spark's log of a query, start for them alone


@pytest.fixture(params=[pytest.param(kind, marks=[pytest.mark.rare] * (kind in SLOW)) for kind in KINDS])
def place(request: pytest.FixtureRequest, places: Callable[[str], Place]) -> Place:
    return places(request.param)


def load(store: OffsetStore) -> dict[int, int]:
    return dict(store.load(ALL).offsets)


def test_store_is_empty_at_first_and_then_the_same_for_all(place: Place) -> None:
    store = place.open()
    assert load(store) == {}
    store.save({0: 5, 1: 0, 3: 1 << 40}, "topic-a")
    assert load(store) == {0: 5, 1: 0, 3: 1 << 40}
    assert load(place.open()) == {0: 5, 1: 0, 3: 1 << 40}, "as another process would"


def test_save_replaces_all_that_was_stored(place: Place) -> None:
    for state in ({0: 5, 1: 6}, {0: 7, 1: 6, 2: 1}, {0: 3, 1: 6, 2: 2}):
        place.open().save(state, "topic-a")
    assert load(place.open()) == {0: 3, 1: 6, 2: 2}, "a store does not decide who may write"
    place.open().save({0: 1}, "topic-a")
    left = {1: 6, 2: 2} if place.kind == "kafka" else {}  # a group keeps the others; the broker drops a deleted topic's
    assert load(place.open()) == {0: 1, **left}


def test_topic_id_is_kept_if_the_format_has_a_field_for_it(place: Place) -> None:
    store = place.open()
    store.save({0: 5}, "topic-a")
    store.save({0: 0}, "topic-b")
    assert place.open().load([0]).topic_id == ("topic-b" if place.kind in ("hdfs", "postgres") else None)


def test_many_saves_leave_nothing_behind(place: Place) -> None:
    store = place.open()
    for n in range(120):
        store.save(dict.fromkeys(ALL, n), "topic-a")
    assert load(place.open()) == dict.fromkeys(ALL, 119)
    if place.kind in ("hdfs", "checkpoint"):
        folder = place.open().place
        files = store._files  # type: ignore[attr-defined]
        logs = [folder] if place.kind == "hdfs" else [f"{folder}/offsets", f"{folder}/commits"]
        assert all(len(files.names(log)) <= (1 if place.kind == "hdfs" else 100) for log in logs)


def test_no_store_remembers_while_its_process_lives() -> None:
    store = NoOffsetStore("g", "t")
    store.save({0: 5}, "topic-a")
    assert (load(store), load(NoOffsetStore("g", "t"))) == ({0: 5}, {})
