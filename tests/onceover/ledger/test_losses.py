"""Losses that a person accepts and holes that are read again, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from tests.onceover.ledger.driven_pipeline import (
    NOON,
    ONE,
    SOURCE,
    TWO,
    change_window,
    insert_batch,
    insert_window,
    of,
    rolled_back,
)

from onceover.errors import UnreachableError, UsageError
from onceover.kafka import TopicFacts
from onceover.kafka.reader import KafkaSource
from onceover.ledger import frontiers, log_cuts, losses
from onceover.ledger.database import Connection
from onceover.ledger.landed_offsets import list_landed, read_accounted
from onceover.ledger.log_cuts import record_cuts
from onceover.ledger.log_limits import list_known_unreadable
from onceover.ledger.read_again import ReadAgain, list_refused, list_wanted, mark_landed, request_ranges
from onceover.ledger.repair_requests import create_request
from onceover.ledger.windows import lock_rows
from onceover.model.offsets import OffsetRange
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


@pytest.fixture
def connection(stack: Stack) -> Iterator[Connection]:
    """A pipeline that skipped [110, 120) of its Kafka partition."""
    with rolled_back("losses", 100, 110, 120) as connection:
        land(connection, 100, 110)
        yield connection


def land(connection: Connection, start: int, end: int, *epochs: tuple[int, int]) -> None:
    insert_batch(connection, "losses", of(start, end), *epochs)


def find_last_batch(connection: Connection) -> int:
    row = connection.execute("SELECT max(batch_id) AS last FROM onceover.batch").fetchone()
    return int((row or {})["last"])


def mark_last_batch(connection: Connection) -> None:
    mark_landed(connection, "losses", find_last_batch(connection))


def request_holes(connection: Connection, *ranges: OffsetRange) -> int:
    request_id = create_request(connection, "losses", "a", "b", {})
    request_ranges(connection, "losses", request_id, map(ReadAgain, ranges))
    return request_id


def list_waiting(connection: Connection, request_id: int | None = None) -> list[OffsetRange]:
    return sorted(each.offsets for each in list_wanted(connection, "losses", request_id))


def test_hole_leaves_out_what_landed_meanwhile(connection: Connection) -> None:
    land(connection, 112, 115)
    request_holes(connection, of(110, 120))
    assert list_waiting(connection) == [of(110, 112), of(115, 120)]


def test_hole_that_landed_in_part_is_wanted_for_the_rest(connection: Connection) -> None:
    request_id = request_holes(connection, of(110, 120))
    for start, end in ((110, 112), (114, 116)):
        land(connection, start, end)
        mark_last_batch(connection)
    assert list_waiting(connection, request_id) == [of(112, 114), of(116, 120)]
    done = connection.execute(
        "SELECT start_offset, end_offset FROM onceover.read_again WHERE pipeline = 'losses' AND state = 'landed' "
        "ORDER BY 1"
    ).fetchall()
    assert [tuple(row.values()) for row in done] == [(110, 112), (114, 116)]


def test_hole_requested_again_waits_for_the_later_request(connection: Connection) -> None:
    first = request_holes(connection, of(110, 112), of(113, 120))
    losses.record_loss(connection, "losses", [of(113, 115)], NOON, ONE, "me", "gone")
    second = request_holes(connection, of(115, 120))
    assert (list_waiting(connection, first), list_waiting(connection, second)) == ([of(110, 112)], [of(115, 120)])
    assert list_refused(connection, "losses", first) == ((of(113, 120), "requested again"),)
    land(connection, 115, 118)
    mark_last_batch(connection)
    assert list_waiting(connection) == [of(110, 112), of(118, 120)], "and not what a person accepted as lost"


def test_damage_waits_by_window_and_lands_with_no_batch(connection: Connection) -> None:
    insert_window(connection, "losses", NOON, ONE)
    insert_window(connection, "losses", ONE, TWO)
    request_holes(connection, of(110, 120))
    damage = [ReadAgain(of(100, 105), NOON, 1), ReadAgain(of(105, 115), NOON, 2), ReadAgain(of(100, 115), ONE, 1)]
    request_ranges(connection, "losses", request_holes(connection), damage)
    again = request_holes(connection)
    request_ranges(connection, "losses", again, [ReadAgain(of(103, 105), NOON, 1)])
    land(connection, 100, 120)
    mark_last_batch(connection)
    waiting = [(each.offsets, each.window_start, each.contract_version) for each in list_wanted(connection, "losses")]
    assert waiting == [(of(105, 115), NOON, 2), (of(100, 115), ONE, 1), (of(103, 105), NOON, 1)]
    change_window(connection, "losses", NOON, "expired_at = now()")
    assert list_waiting(connection) == [of(100, 115)], "what raw of an expired window has lost is not read again"
    assert list_waiting(connection, again) == []
    rows = connection.execute("SELECT version FROM onceover.\"window\" WHERE pipeline = 'losses' ORDER BY window_start")
    assert [row["version"] for row in rows] == [2, 1], "each request has its windows judged again"


def test_unreadable_offsets_are_settled_and_not_read_again(connection: Connection) -> None:
    request_holes(connection, of(110, 114), of(114, 120))
    losses.record_unreadable(connection, "losses", of(112, 114), 3, NOON, ONE, "me", "a bomb")
    assert list_waiting(connection) == [of(110, 112), of(114, 120)]
    assert frontiers.read_holes(connection, "losses") == [of(110, 112), of(114, 120)]
    rows = connection.execute("SELECT kind FROM onceover.accepted_loss WHERE pipeline = 'losses'").fetchall()
    assert [row["kind"] for row in rows] == ["unreadable"]
    wait_before(connection, 118, 119)
    assert list_known_unreadable(connection, "losses", SOURCE.generation) == (of(112, 114), of(118, 119))
    assert list_known_unreadable(connection, "losses", "ffffffff") == ()


def wait_before(connection: Connection, start: int, end: int) -> None:
    connection.execute(
        "UPDATE onceover.kafka_partition SET unreadable = int8range(%s, %s), unreadable_why = 'a bomb' "
        "WHERE pipeline = 'losses' AND generation = %s AND kafka_partition = 0",
        [start, end, SOURCE.generation],
    )


def list_unreadable_losses(connection: Connection) -> list[tuple[int, ...]]:
    rows = connection.execute(
        "SELECT start_offset, end_offset FROM onceover.accepted_loss "
        "WHERE pipeline = 'losses' AND relanded_at IS NULL AND kind = 'unreadable' ORDER BY 1"
    )
    return [tuple(row.values()) for row in rows]


def test_unreadable_offsets_of_a_batch_in_flight_are_refused(connection: Connection) -> None:
    wait_before(connection, 120, 130)
    land(connection, 125, 140)
    connection.execute("UPDATE onceover.batch SET state = 'begun' WHERE batch_id = %s", [find_last_batch(connection)])
    with pytest.raises(UsageError, match="has begun to read some of 0a1b2c3d-0:120-130 and may still land them"):
        losses.record_unreadable(connection, "losses", of(120, 130), 3, NOON, ONE, "me", "a bomb")
    losses.record_unreadable(connection, "losses", of(120, 125), 3, NOON, ONE, "me", "a bomb")
    connection.execute("UPDATE onceover.batch SET state = 'superseded' WHERE state = 'begun' AND pipeline = 'losses'")
    wait_before(connection, 125, 130)
    losses.record_unreadable(connection, "losses", of(125, 130), 3, NOON, ONE, "me", "a bomb")
    assert list_unreadable_losses(connection) == [(120, 125), (125, 130)]


def test_offsets_that_land_before_their_locks_are_not_unreadable(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver reads them after all, and lands them while the command waits for its locks; its note is still there."""

    def land_first(*given: Any) -> frozenset[datetime]:
        land(connection, 122, 124)
        frontiers.advance(connection, "losses", [of(122, 124)])
        return lock_rows(*given)

    wait_before(connection, 120, 130)
    monkeypatch.setattr(losses, "lock_rows", land_first)
    with pytest.raises(UsageError, match="0a1b2c3d-0:120-130 was read meanwhile"):
        losses.record_unreadable(connection, "losses", of(120, 130), 3, NOON, ONE, "me", "a bomb")
    assert list_unreadable_losses(connection) == []


def test_loss_of_expired_offsets_closes_their_hole(connection: Connection) -> None:
    losses.record_loss(connection, "losses", [of(110, 120)], NOON, ONE, "me", "gone")
    assert frontiers.read_holes(connection, "losses") == []
    rows = connection.execute("SELECT kind FROM onceover.accepted_loss WHERE pipeline = 'losses'").fetchall()
    assert [row["kind"] for row in rows] == ["lost"]


def test_unreadable_offset_under_a_landed_one_is_read(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log was cut to 102 and has grown to 130: of its new records no reader gets 102, nor 105 and 106."""
    connection.execute(
        "UPDATE onceover.batch_range SET records = 10, leader_epochs = '[[1, 100]]' WHERE generation = %s",
        [SOURCE.generation],
    )
    connection.execute("UPDATE onceover.kafka_partition SET reach = 110, frontier = 110 WHERE pipeline = 'losses'")
    monkeypatch.setattr(log_cuts, "LogProbe", CutLog)
    facts = TopicFacts("topic", "id", SOURCE.generation, {0: 100}, {0: 130}, {0: 2})
    source = KafkaSource("none:1", "topic", "id")

    def accept(start: int, end: int) -> None:
        wait_before(connection, start, end)
        losses.record_unreadable(connection, "losses", of(start, end), 2, NOON, ONE, "me", "a bomb")

    def read(start: int, end: int, epoch: int) -> None:
        losses.reland(connection, "losses", [of(start, end)])
        land(connection, start, end, (epoch, start))
        frontiers.advance(connection, "losses", [of(start, end)])

    with pytest.raises(UsageError, match="was read meanwhile"):
        accept(105, 107)
    assert record_cuts(connection, "losses", facts, source) == {0: 102}
    accept(102, 103)
    assert record_cuts(connection, "losses", facts, source) == {}, "reading goes on behind it"
    assert list_landed(connection, "losses", [of(100, 110)]) == (of(100, 102),)
    read(103, 105, 2)
    accept(105, 107)
    read(107, 130, 2)
    assert frontiers.read_holes(connection, "losses") == []
    assert read_accounted(connection, "losses") == [of(100, 130)], "as one landed them before the log was cut"
    monkeypatch.setattr(CutLog, "cut_again_at", 105)
    facts = replace(facts, leader_epochs={0: 3})
    assert record_cuts(connection, "losses", facts, source) == {0: 105}, "perhaps it can be read now"
    assert list_unreadable_losses(connection) == [(102, 103)]
    read(105, 106, 3)
    accept(106, 107)
    monkeypatch.setattr(CutLog, "never", (106,))
    read(107, 130, 3)
    facts = replace(facts, leader_epochs={0: 4})
    assert record_cuts(connection, "losses", facts, source) == {}
    assert list_unreadable_losses(connection) == [(102, 103), (106, 107)], "each that was not read is stated once"


class CutLog:
    """Records of leader epoch 1, of 2 from 102 on, and of 3 where it was cut again. 102 is damaged; some never come."""

    cut_again_at = 1_000
    never = (105, 106)

    def __init__(self, source: KafkaSource, kafka_partition: int, end: int) -> None: ...

    def find_epoch(self, offset: int) -> tuple[int, int]:
        if offset in self.never:
            raise UnreachableError("nothing arrives")
        at = 103 if offset == 102 else offset
        return at, 1 if at < 102 else 2 if at < self.cut_again_at else 3

    def close(self) -> None: ...
