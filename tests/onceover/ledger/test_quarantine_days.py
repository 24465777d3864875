"""Which quarantine files may hold records that no landing accounts for, by their lengths."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime

import pytest
from bench.large_ledger import pipeline

from onceover.ledger import batches, drivers, frontiers, landings
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.quarantine_days import list_searchable_days, list_unexplained_days, record_search
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack

SOURCE = KafkaPartition("0a1b2c3d", 0)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PROVED, UNPROVED, UNKNOWN = date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)


@pytest.fixture
def name(connection: Connection) -> str:
    """A pipeline that landed 100 bytes in quarantine on each of two days, the second append unproved."""
    known = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS)
    epoch = drivers.acquire(connection, known.name, "test")
    frontiers.register_kafka_partitions(connection, epoch, "topic", {SOURCE: Start(0, 0)}, {SOURCE: 100})
    for offset, day in enumerate((PROVED, UNPROVED)):
        one = Digest(1, 1, 2, 3, 4)
        offsets = OffsetRange(SOURCE, offset, offset + 1)
        batch_id = batches.begin(connection, epoch, 1, [offsets])
        landing = Landing(None, day, 0, 100, day == PROVED, (LandingPart(SOURCE, one),))
        read = RangeRead(offsets, one, None, NOON, ((0, offset),))
        batches.land_batch(connection, epoch, batch_id, [read], [landing])
    return known.name


@pytest.mark.parametrize(("length", "unexplained"), [(100, False), (101, True), (99, True)])
def test_only_the_landed_length_explains_a_quarantine_file(
    connection: Connection, name: str, length: int, unexplained: bool
) -> None:
    assert list_unexplained_days(connection, name, {PROVED: length}) == [PROVED] * unexplained


def test_unproved_and_unknown_quarantine_files_are_searched_once(connection: Connection, name: str) -> None:
    lengths = {PROVED: 100, UNPROVED: 100, UNKNOWN: 7}
    assert list_searchable_days(connection, name, lengths) == {UNPROVED: (), UNKNOWN: ()}
    record_search(connection, name, UNPROVED, 100, 0)
    assert list_searchable_days(connection, name, lengths) == {UNKNOWN: ()}
    record_search(connection, name, UNKNOWN, 7, 1)
    assert list_searchable_days(connection, name, lengths) == {UNKNOWN: ()}


def test_quarantine_file_with_lines_beyond_a_log_waits_for_them(connection: Connection, name: str) -> None:
    other = KafkaPartition("0a1b2c3d", 1)
    beyond = [OffsetRange(SOURCE, 7, 9), OffsetRange(SOURCE, 20, 30), OffsetRange(other, 3, 4)]
    record_search(connection, name, UNKNOWN, 7, 0, beyond)
    first = [OffsetRange(SOURCE, 7, 8), OffsetRange(other, 3, 4)]
    assert list_searchable_days(connection, name, {UNKNOWN: 7}) == {UNKNOWN: first}
    assert list_searchable_days(connection, name, {UNKNOWN: 8}) == {UNKNOWN: ()}, "the file has grown"


def test_quarantined_records_are_counted(connection: Connection, name: str) -> None:
    assert (landings.count_quarantined(connection, name), landings.count_quarantined(connection, "other")) == (2, 0)
