"""Rows that a rebuild of a lost ledger finds without raw."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from bench.large_ledger import pipeline

from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import as_driver
from onceover.ledger.rebuilt import expire_rows_without_raw, insert_windows
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawContents, RawFile, Run
from onceover.recovery.rebuild_ledger import KnownLogs, write_ledger

pytestmark = pytest.mark.stack
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCE = KafkaPartition("0a1b2c3d", 0)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"),))


def test_second_rebuild_keeps_rows_that_had_no_raw(connection: Connection) -> None:
    registered = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS)
    connection.execute(
        f"INSERT INTO aggregates.{registered.name} (window_start, window_end, kind, events) "
        "VALUES (%(noon)s, %(noon)s, 'a', 7), (%(noon)s, %(noon)s, 'b', 9)", {"noon": NOON},
    )  # fmt: skip
    without_file: list[datetime] = []
    for files in (without_file, [NOON]):  # a part was read again from Kafka before the ledger was lost once more
        connection.execute('DELETE FROM onceover."window" WHERE pipeline = %s', [registered.name])
        insert_windows(connection, registered, files)
        assert expire_rows_without_raw(connection, registered, files) == [NOON]
        (window,) = connection.execute(
            'SELECT expired_at IS NOT NULL AS expired, kept_rows FROM onceover."window" WHERE pipeline = %s',
            [registered.name],
        ).fetchall()
        assert window == {"expired": True, "kept_rows": 2}
    registered.table.set_revision(connection, [NOON], 0)
    assert expire_rows_without_raw(connection, registered, [NOON]) == [], "raw gave these rows since"


def test_rebuild_waits_for_what_the_log_may_have_changed(connection: Connection) -> None:
    registered, at = register_pipeline(connection, pipeline(f"s{uuid.uuid4().hex[:10]}"), COLUMNS), SOURCE

    def run(start: int, end: int, *epochs: tuple[int, int]) -> Run:
        held = ((0, Digest(end - start, start)),)
        return Run(OffsetRange(at, start, end), held, None, None, leader_epochs=epochs)

    file = RawFile("/unread.log", 100, window_start=NOON)
    with as_driver(connection, registered.name, "test") as epoch:
        runs = RawContents(((run(0, 10), run(10, 20, (1, 10)), run(20, 30)),))
        write_ledger(connection, epoch, registered, [file], runs, KnownLogs(held=[OffsetRange(at, 5, 60)]))
    rows = connection.execute(
        "SELECT unknown_from FROM onceover.kafka_partition WHERE pipeline = %s", [registered.name]
    ).fetchall()
    assert rows == [{"unknown_from": 5}], "before 5 the log has nothing left to compare"
