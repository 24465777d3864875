"""Decisions about all conflicts of a window at once."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from bench.large_ledger import pipeline

from onceover.ledger import conflicts, losses
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.decisions import decide_all, list_own_contents, read_decisions
from onceover.model.conflict import NEWEST, Content
from onceover.model.contract import Column, Columns
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCE = KafkaPartition("0a1b2c3d", 0)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))


def test_ids_without_a_known_newest_content_are_left(connection: Connection) -> None:
    name = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS).name
    held: dict[int, dict[str, int | None]] = {
        7: {"aaaa": 3, "bbbb": None},
        8: {"cccc": None, "dddd": None},
    }  # leader epochs by offset and content
    contents = [
        Content(SOURCE, offset, each, NOON, NOON, epoch)
        for offset, of_id in held.items()
        for each, epoch in of_id.items()
    ]
    conflicts.record_contents(connection, name, contents)
    done = decide_all(connection, name, NOON, NEWEST, "test", "a test")
    assert (done.ids, done.windows) == (1, (NOON,))
    assert [(each.offset, [content for content, _ in each.contents]) for each in done.left] == [(8, ["cccc", "dddd"])]
    assert {content.offset for content in conflicts.list_undecided(connection, name, NOON)} == {8}
    again = decide_all(connection, name, NOON, NEWEST, "test", "a test")
    assert (again.ids, len(again.left)) == (0, 1)


def test_decision_names_the_contents_of_its_own_window(connection: Connection) -> None:
    name, later = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS).name, timedelta(hours=1)
    windows: dict[str, datetime | None] = {"aaaa": NOON, "bbbb": NOON, "cccc": NOON + later, "dddd": None}
    contents = [Content(SOURCE, 7, each, start, NOON, 3 if each == "cccc" else None) for each, start in windows.items()]
    conflicts.record_contents(connection, name, contents)
    (own,) = list_own_contents(connection, name, [NOON])[NOON]
    assert (own.contents, own.newest) == (("aaaa", "bbbb"), "cccc")
    decide_all(connection, name, NOON, NEWEST, "test", "a test")
    rows = connection.execute(
        "SELECT decision_id FROM onceover.decision WHERE pipeline = %s ORDER BY window_start", [name]
    )
    by_window = [read_decisions(connection, [row["decision_id"]]) for row in rows.fetchall()]
    assert [[(d.kept, d.contents) for d in each] for each in by_window] == [
        [("cccc", ("aaaa", "bbbb"))],
        [("cccc", ("cccc",))],
    ]


def test_decided_id_is_no_accepted_loss_any_more(connection: Connection) -> None:
    """Its second content was accepted as lost unread, and a batch that had died turned out to have appended it."""
    name = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS).name
    unread, ids = OffsetRange(SOURCE, 5, 9), [OffsetRange(SOURCE, 7, 8)]
    connection.execute(
        'INSERT INTO onceover."window" (pipeline, window_start, window_end) VALUES (%s, %s, %s)',
        [name, NOON, NOON + timedelta(hours=1)],
    )
    losses._insert(connection, name, [unread], NOON, NOON + timedelta(hours=2), "me", "gone", "overwritten")
    contents = [Content(SOURCE, 7, each, NOON, NOON, epoch) for each, epoch in (("aaaa", 3), ("bbbb", None))]
    conflicts.record_contents(connection, name, contents)
    assert losses.list_stating(connection, name, ids) == [NOON]
    assert decide_all(connection, name, NOON, NEWEST, "test", "a test").ids == 1
    assert losses.list_stating(connection, name, ids) == []
    assert losses.list_stating(connection, name, [unread]) == [NOON], "the other offsets stay lost"
