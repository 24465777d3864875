"""Leader epochs of landed offsets, in the order in which they were read, and what the log held when it was compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from onceover.config.endpoints import address
from onceover.detection.evidence import _find_incomplete_partitions, read_versions
from onceover.errors import UsageError
from onceover.kafka import TopicFacts
from onceover.kafka.reader import KafkaSource
from onceover.ledger import log_comparison, losses
from onceover.ledger.database import Connection, connect
from onceover.ledger.landed_offsets import read_accounted
from onceover.ledger.log_comparison import LogComparison
from onceover.ledger.log_cuts import NOT_WHOLE, Comparison, end_comparisons, list_landed_epochs, record_comparison
from onceover.ledger.losses import record_overwritten
from onceover.ledger.migrate import upgrade_schema
from onceover.model.log_history import EpochSpan, find_divergence, find_unknown
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover_local.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.rare]

AT = KafkaPartition("0a1b2c3d", 0)
LOG = OffsetRange(AT, 0, 100)
NOON, LATER = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 13, tzinfo=UTC)


@pytest.fixture
def connection(stack: Stack) -> Iterator[Connection]:
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection, connection.transaction(force_rollback=True):
        connection.execute("INSERT INTO onceover.pipeline (name, contract_version) VALUES ('cuts', 1)")
        connection.execute(
            "INSERT INTO onceover.kafka_partition VALUES ('cuts', %s, 0, 'topic', 0, 100, 100, 100, NULL, NULL)",
            [AT.generation],
        )
        yield connection


def land(connection: Connection, start: int, end: int, *epochs: tuple[int, int], records: int = 1) -> None:
    connection.execute(
        "WITH b AS (INSERT INTO onceover.batch (pipeline, epoch, contract_version, state) "
        "VALUES ('cuts', 1, 1, 'landed') RETURNING batch_id) "
        "INSERT INTO onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset, records, "
        "leader_epochs) SELECT batch_id, %s, 0, %s, %s, %s, %s FROM b",
        [AT.generation, start, end, records, json.dumps(epochs)],
    )


def span(start: int, end: int, epoch: int | None) -> EpochSpan:
    return EpochSpan(OffsetRange(AT, start, end), epoch)


def test_log_that_was_cut_and_came_back_is_as_it_landed(connection: Connection) -> None:
    land(connection, 0, 50, (2, 0))
    land(connection, 50, 80, (3, 50))
    land(connection, 50, 90, (2, 50))
    land(connection, 90, 95, records=0)
    landed = list_landed_epochs(connection, "cuts", LOG)
    assert landed == [span(0, 50, 2), span(50, 80, 3), span(50, 95, 2)]
    assert find_divergence(landed, LOG, lambda at: (at, 2)) is None
    assert find_divergence(landed, LOG, lambda at: (at, 2 if at < 70 else 5)) == 70


def test_rebuilt_offsets_are_unknown_until_they_are_read(connection: Connection) -> None:
    land(connection, 0, 40)
    land(connection, 40, 50, (1, 40))
    land(connection, 60, 70)
    landed = list_landed_epochs(connection, "cuts", LOG)
    assert find_unknown(landed, LOG) == (OffsetRange(AT, 0, 40), OffsetRange(AT, 60, 70))
    land(connection, 0, 70, (1, 0))
    assert find_unknown(list_landed_epochs(connection, "cuts", LOG), LOG) == ()


def test_unknown_offsets_keep_the_log_uncompared(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_row() -> tuple[int | None, ...]:
        row = connection.execute(
            "SELECT compared_epoch, diverged_from, unknown_from FROM onceover.kafka_partition WHERE pipeline = 'cuts'"
        ).fetchone()
        return tuple(row.values()) if row else ()

    monkeypatch.setattr(log_comparison, "LogProbe", ProbeOfEpochTwo)
    facts = TopicFacts("topic", "id", AT.generation, {0: 10}, {0: 60}, {0: 2})
    comparison = LogComparison(connection, "cuts")
    land(connection, 0, 40)
    land(connection, 40, 50, (2, 40))
    assert comparison.compare(facts, KafkaSource("none:1", "topic", "id")) == {}
    assert read_row() == (NOT_WHOLE, None, 10), "compared no more than it knows"
    assert comparison.list_unknown(AT.generation) == [OffsetRange(AT, 10, 40)]
    land(connection, 10, 30, (2, 10))
    comparison.compare(facts, KafkaSource("none:1", "topic", "id"))
    assert comparison.list_unknown(AT.generation) == [OffsetRange(AT, 30, 40)], "killed in between, the rest is left"
    land(connection, 30, 40, (2, 30))
    comparison.compare(facts, KafkaSource("none:1", "topic", "id"))
    assert (read_row(), comparison.list_unknown(AT.generation)) == ((2, None, None), [])


def test_log_that_more_landed_of_meanwhile_is_compared_again(connection: Connection) -> None:
    land(connection, 0, 40, (2, 0))
    landed = list_landed_epochs(connection, "cuts", LOG)
    for expected in (2, None):
        assert not record_comparison(connection, "cuts", Comparison(LOG, landed, None, None, 2), None)
        found = connection.execute("SELECT compared_epoch FROM onceover.kafka_partition WHERE pipeline = 'cuts'")
        assert found.fetchall() == [{"compared_epoch": expected}]
        land(connection, 70, 80, (2, 70))


class ProbeOfEpochTwo:
    def __init__(self, source: KafkaSource, kafka_partition: int) -> None: ...

    def find_epoch(self, offset: int) -> tuple[int, int]:
        return offset, 2

    def close(self) -> None: ...


def read_overwritten(connection: Connection) -> list[list[int]]:
    findings = _find_incomplete_partitions(connection, "cuts")
    return [piece[2:] for f in findings for piece in f.evidence.get("overwritten", ())]  # type: ignore[attr-defined]


@pytest.mark.parametrize("living", [None, "ffffffff"])
def test_deleted_topic_keeps_what_was_not_read_again(connection: Connection, living: str | None) -> None:
    land(connection, 0, 100, (1, 0))
    news = [record_comparison(connection, "cuts", Comparison(LOG, [], 40, None, NOT_WHOLE), None) for _ in range(2)]
    assert news == [True, False]
    land(connection, 40, 60, (2, 40))
    assert end_comparisons(connection, "cuts", living)
    assert not end_comparisons(connection, "cuts", living)
    assert read_overwritten(connection) == [[60, 100]]


def test_divergence_that_expired_unread_stays_stated(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_comparison, "LogProbe", ProbeOfEpochTwo)
    source = KafkaSource("none:1", "topic", "id")

    def compare(start: int) -> None:
        facts = TopicFacts("topic", "id", AT.generation, {0: start}, {0: 200}, {0: 2})
        LogComparison(connection, "cuts").compare(facts, source)

    land(connection, 5, 80, (1, 5))
    land(connection, 80, 100)
    connection.execute(
        "INSERT INTO onceover.\"window\" (pipeline, window_start, window_end) VALUES ('cuts', %s, %s)", [NOON, LATER]
    )
    connection.execute("UPDATE onceover.pipeline SET every_window_closed = true WHERE name = 'cuts'")
    compare(0)
    land(connection, 5, 10, (2, 5))
    compare(90)
    assert read_overwritten(connection) == [[10, 90]], "other records were there, or may have been"
    land(connection, 90, 100, (2, 90))
    compare(100)
    assert read_versions(connection, "cuts", None, None, False) == {}, "nothing is certified"
    with pytest.raises(UsageError, match="0a1b2c3d-0:10-90"):
        record_overwritten(connection, "cuts", OffsetRange(AT, 5, 90), NOON, LATER, "me", "gone")
    lost, reopened = record_overwritten(connection, "cuts", OffsetRange(AT, 10, 90), NOON, LATER, "me", "gone")
    assert (lost, reopened) == ((OffsetRange(AT, 10, 90),), [NOON])
    assert list(read_versions(connection, "cuts", None, None, False)) == [NOON]
    assert read_overwritten(connection) == []
    assert read_accounted(connection, "cuts") == [OffsetRange(AT, 0, 100)], "they have landed"
    assert losses.list_stating(connection, "cuts", lost) == [NOON]
