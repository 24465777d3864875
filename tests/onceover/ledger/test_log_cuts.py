"""Logs that were cut, by the leader epochs of what landed: from there on all is to be read, and what landed is past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from tests.onceover.ledger.driven_pipeline import NOON, ONE, SOURCE, insert_batch, insert_window, of, rolled_back

from onceover.detection.evidence import find_incomplete_partitions, read_versions
from onceover.errors import BusyError
from onceover.kafka import TopicFacts
from onceover.kafka.reader import KafkaSource
from onceover.ledger import frontiers, log_cuts, losses
from onceover.ledger.database import Connection
from onceover.ledger.extras import list_landed_spans
from onceover.ledger.landed_offsets import list_landed, read_accounted
from onceover.ledger.log_cuts import end_cuts, list_landed_epochs, record_comparison, record_cuts
from onceover.ledger.read_again import list_wanted
from onceover.ledger.repair_requests import create_request
from onceover.model.finding_kinds import Kind
from onceover.model.log_history import EpochSpan
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]

LOG = of(0, 100)
TOPIC = KafkaSource("none:1", "topic", "id")


@pytest.fixture
def connection(stack: Stack) -> Iterator[Connection]:
    """A pipeline that read its Kafka partition up to 100."""
    with rolled_back("cuts", origin=0, closed=True) as connection:
        insert_window(connection, "cuts")
        yield connection


def land(connection: Connection, start: int, end: int, *epochs: tuple[int, int], records: int = 1) -> None:
    insert_batch(connection, "cuts", of(start, end), *epochs, records=records)
    frontiers.advance(connection, "cuts", [of(start, end)])


def span(start: int, end: int, epoch: int | None) -> EpochSpan:
    return EpochSpan(of(start, end), epoch)


class ProbeOfEpochTwo:
    """A log of leader epoch 1 below 40, of 2 from there on."""

    def __init__(self, source: KafkaSource, kafka_partition: int, end: int) -> None: ...

    def find_epoch(self, offset: int) -> tuple[int, int]:
        return offset, 1 if offset < 40 else 2

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_cuts, "LogProbe", ProbeOfEpochTwo)


def compare(connection: Connection, start: int, end: int, leader_epoch: int = 2, high: int = 0) -> Mapping[int, int]:
    facts = TopicFacts("topic", "id", SOURCE.generation, {0: start}, {0: end}, {0: leader_epoch}, {0: max(end, high)})
    return record_cuts(connection, "cuts", facts, TOPIC)


def read_log(connection: Connection, columns: str = "frontier, reach, compared_epoch") -> tuple[object, ...]:
    """Return what the ledger says of the log, by default where it is read and at which leader epoch it was compared."""
    row = connection.execute(f"SELECT {columns} FROM onceover.kafka_partition WHERE pipeline = 'cuts'").fetchone()
    return tuple((row or {}).values())


def test_landed_epochs_are_listed_in_the_order_of_reading(connection: Connection) -> None:
    land(connection, 0, 50, (2, 0))
    land(connection, 50, 80, (3, 50))
    land(connection, 50, 90, (2, 50))
    land(connection, 90, 95, records=0)
    land(connection, 95, 99)
    assert list_landed_epochs(connection, "cuts", LOG) == [
        span(0, 50, 2), span(50, 80, 3), span(50, 95, 2), span(95, 99, None),
    ]  # fmt: skip


def test_what_landed_from_the_cut_on_is_past_and_read_again(connection: Connection) -> None:
    land(connection, 0, 30, (1, 0))
    land(connection, 30, 100, (1, 30))
    connection.execute("UPDATE onceover.kafka_partition SET max_event_time = %s WHERE pipeline = 'cuts'", [ONE])
    assert compare(connection, 0, 60) == {0: 40}
    assert read_log(connection) == (40, 40, 2)
    assert list_landed(connection, "cuts", [of(0, 100)]) == (of(0, 40),), "the rest is to be read"
    assert read_accounted(connection, "cuts") == [of(0, 100)], "and has landed, for its records count"
    assert list_landed_spans(connection, "cuts", [of(90, 100)]) == [span(90, 100, 1)]
    assert frontiers.read_holes(connection, "cuts") == []
    assert read_log(connection, "max_event_time") == (None,), "what is past closes no window"
    (finding,) = find_incomplete_partitions(connection, "cuts")
    assert (finding.kind, finding.evidence["cut_from"]) == (Kind.TRUNCATED, [[SOURCE.generation, 0, 40]])
    assert list(read_versions(connection, "cuts", None, None, False)) == [NOON], "its windows are judged"
    assert compare(connection, 0, 60) == {0: 40}, "until something is read there"
    land(connection, 40, 55, (2, 40))
    assert (compare(connection, 0, 60), read_log(connection)) == ({}, (55, 55, 2))
    assert find_incomplete_partitions(connection, "cuts") == ()
    land(connection, 55, 60, (2, 55))
    assert (compare(connection, 0, 60, 3), read_log(connection)) == ({}, (60, 60, 3)), "it is as it landed"


def test_log_that_ends_before_what_was_read_is_cut_there(connection: Connection) -> None:
    land(connection, 0, 40, (1, 0))
    land(connection, 40, 100, (2, 40))
    assert compare(connection, 0, 70) == {0: 70}
    assert read_log(connection) == (70, 70, 2)
    land(connection, 70, 120, (3, 70))
    assert read_log(connection) == (120, 120, 2)


def test_cut_behind_an_open_transaction_is_seen(connection: Connection) -> None:
    land(connection, 0, 40, (1, 0))
    land(connection, 40, 100, (2, 40))
    assert compare(connection, 0, 60, 3, high=120) == {0: 60}, "what the transaction hides is longer than what landed"
    assert read_log(connection, "high_watermark") == (60,), "and nothing of the old log is hidden"


def test_paused_driver_lands_nothing_after_detection_compared(connection: Connection) -> None:
    land(connection, 0, 100, (1, 0))
    connection.execute(
        "INSERT INTO onceover.driver (pipeline, owner, epoch, expires_at) VALUES ('cuts', 'paused', 1, now() - "
        "interval '1 hour')"
    )
    connection.execute("INSERT INTO onceover.batch (pipeline, epoch, contract_version) VALUES ('cuts', 1, 1)")
    compare(connection, 0, 60)
    (row,) = connection.execute("SELECT state FROM onceover.batch WHERE pipeline = 'cuts' AND state <> 'landed'")
    assert row == {"state": "superseded"}


def test_hole_beyond_a_cut_waits_no_longer(connection: Connection) -> None:
    request = create_request(connection, "cuts", "me", "a hole", {})
    land(connection, 0, 100, (1, 0))
    for start, end in ((10, 20), (30, 45), (60, 70)):
        connection.execute(
            "INSERT INTO onceover.read_again (pipeline, generation, kafka_partition, start_offset, end_offset, "
            "request_id) VALUES ('cuts', %s, 0, %s, %s, %s)",
            [SOURCE.generation, start, end, request],
        )
    compare(connection, 0, 80)
    assert [each.offsets for each in list_wanted(connection, "cuts")] == [of(10, 20)]


def test_what_is_past_closes_no_window(connection: Connection) -> None:
    connection.execute("UPDATE onceover.kafka_partition SET frontier = 20 WHERE pipeline = 'cuts'")
    land(connection, 0, 20, (1, 0))
    land(connection, 30, 100, (1, 30))
    connection.execute("UPDATE onceover.batch SET committed_at = now() WHERE pipeline = 'cuts'")
    connection.execute("UPDATE onceover.batch_range SET max_event_time = %s WHERE start_offset = 30", [ONE])
    compare(connection, 0, 60)
    assert frontiers.read_committed_offsets(connection, "cuts", SOURCE.generation) == {0: 20}
    land(connection, 20, 30, (1, 20))
    assert read_log(connection, "frontier, max_event_time") == (40, None)


def test_log_that_is_cut_twice_is_read_from_the_earlier_cut(connection: Connection) -> None:
    land(connection, 0, 100, (1, 0))
    compare(connection, 0, 100)
    land(connection, 40, 45, (2, 40))
    land(connection, 55, 80, (2, 55))
    assert compare(connection, 0, 60, 3) == {0: 60}
    assert list_landed(connection, "cuts", [of(0, 100)]) == (of(0, 45), of(55, 60)), "what is past stays past"
    assert compare(connection, 0, 20, 4) == {0: 20}
    land(connection, 20, 30, (4, 20))
    assert list_landed(connection, "cuts", [of(0, 100)]) == (of(0, 30),), "what landed before the last cut is past"


def test_what_expires_after_a_cut_is_a_hole_to_give_up(connection: Connection) -> None:
    land(connection, 0, 100, (1, 0))
    compare(connection, 0, 200)
    connection.execute("UPDATE onceover.kafka_partition SET reach = 90 WHERE pipeline = 'cuts'")  # as a plan does
    assert frontiers.read_holes(connection, "cuts") == [of(40, 90)]
    losses.record_loss(connection, "cuts", [of(40, 90)], NOON, ONE, "me", "gone")
    land(connection, 90, 200, (2, 90))
    assert (read_log(connection), compare(connection, 90, 200, 3)) == ((200, 200, 2), {})
    assert losses.list_stating(connection, "cuts", [of(40, 90)]) == [NOON]
    assert read_accounted(connection, "cuts") == [of(0, 200)], "what landed there counts"
    assert list_landed(connection, "cuts", [of(0, 200)]) == (of(0, 40), of(90, 200))


def test_loss_beyond_a_cut_is_taken_back(connection: Connection) -> None:
    connection.execute("UPDATE onceover.kafka_partition SET frontier = 30 WHERE pipeline = 'cuts'")
    land(connection, 0, 30, (1, 0))
    land(connection, 60, 100, (1, 60))
    losses.record_loss(connection, "cuts", [of(30, 60)], NOON, ONE, "me", "gone")
    before = read_versions(connection, "cuts", None, None, False)
    assert compare(connection, 0, 100) == {0: 60}
    assert losses.list_stating(connection, "cuts", [of(30, 60)]) == [NOON], "it is not beyond"
    land(connection, 60, 100, (2, 60))
    assert compare(connection, 0, 50, 3) == {0: 50}
    assert losses.list_stating(connection, "cuts", [of(50, 60)]) == []
    assert losses.list_stating(connection, "cuts", [of(30, 50)]) == [NOON]
    assert read_versions(connection, "cuts", None, None, False) != before, "it is judged again"
    land(connection, 60, 70, (3, 60))
    assert read_log(connection, "frontier, reach") == (50, 70), "nothing passes over what is to be read"


def test_what_a_deleted_topic_held_since_its_cut_is_a_hole(connection: Connection) -> None:
    land(connection, 0, 100, (1, 0))
    compare(connection, 0, 120)
    assert end_cuts(connection, "cuts")
    assert not end_cuts(connection, "cuts")
    assert frontiers.read_holes(connection, "cuts") == [of(40, 120)]


def test_cut_that_a_deleted_topic_never_grew_beyond_ends(connection: Connection) -> None:
    land(connection, 0, 40, (1, 0))
    land(connection, 40, 100, (2, 40))
    compare(connection, 0, 50, 3)
    assert end_cuts(connection, "cuts")
    assert find_incomplete_partitions(connection, "cuts") == ()


def test_log_of_which_more_landed_meanwhile_is_left(connection: Connection) -> None:
    land(connection, 0, 40, (2, 0))
    landed = list_landed_epochs(connection, "cuts", LOG)
    land(connection, 70, 80, (2, 70))
    with pytest.raises(BusyError, match="landed records meanwhile"):
        record_comparison(connection, "cuts", LOG, landed, None, 2, None)


def test_batches_around_a_cut_are_not_rolled_up(connection: Connection) -> None:
    land(connection, 0, 100, (1, 0))
    compare(connection, 0, 60)
    rows = connection.execute("SELECT rolled_up_at FROM onceover.batch WHERE pipeline = 'cuts'").fetchall()
    assert [row["rolled_up_at"] is None for row in rows] == [False]
    assert frontiers.read_reach(connection, "cuts") == {SOURCE: 100}, "a batch that begins below overlaps others"
