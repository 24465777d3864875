"""What a rebuild writes into a lost ledger: rows without raw, logs to compare, contracts."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime

import pytest
from bench.large_ledger import pipeline
from tests.onceover.ledger.driven_pipeline import COLUMNS, NOON, SOURCE, register

from onceover.ledger.catalog import read_registered, register_pipeline, restore_contracts
from onceover.ledger.database import Connection
from onceover.ledger.drivers import as_driver
from onceover.ledger.log_cuts import is_uncompared
from onceover.ledger.rebuilt_rows import expire_rows_without_raw, insert_windows
from onceover.ledger.releases import list_releases
from onceover.model.contract import Cutovers
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawContents, RawFile, Run
from onceover.recovery.rebuild_ledger import KnownLogs, find_read_nowhere, write_ledger

pytestmark = pytest.mark.stack
FILE = RawFile("/unread.log", 100, window_start=NOON)


def test_second_rebuild_keeps_rows_that_had_no_raw(connection: Connection) -> None:
    registered = register(connection)
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


def test_rebuilt_ledger_waits_for_the_logs_comparison(connection: Connection) -> None:
    registered, at = register(connection), SOURCE

    def run(start: int, end: int, *epochs: tuple[int, int]) -> Run:
        held = ((0, Digest(end - start, start)),)
        return Run(OffsetRange(at, start, end), held, None, None, leader_epochs=epochs)

    def list_epochs() -> list[object]:
        rows = connection.execute(
            "SELECT leader_epochs FROM onceover.batch_range JOIN onceover.batch USING (batch_id) "
            "WHERE pipeline = %s ORDER BY start_offset",
            [registered.name],
        )
        return [row["leader_epochs"] for row in rows]

    with as_driver(connection, registered.name, "test") as epoch:
        runs = RawContents(((run(0, 10), run(10, 20, (1, 10)), run(20, 30)),))
        write_ledger(connection, epoch, registered, [FILE], runs, KnownLogs())
    assert list_epochs() == [[], [[1, 10]], []]
    assert is_uncompared(connection, registered.name, at.generation), "no window is certified until it is"
    (row,) = connection.execute("SELECT last_value > 1e9 AS is_beyond FROM onceover.expiry_expiry_id_seq").fetchall()
    assert row["is_beyond"], "no file of the lost ledger's has the number of a later expiry"


def test_restored_contracts_replace_the_first_and_cut_batches(connection: Connection) -> None:
    made = pipeline(f"s{uuid.uuid4().hex[:10]}")
    register_pipeline(connection, made, COLUMNS)
    versions = [(replace(made.contract, event_time=f"value.at + {n}"), COLUMNS) for n in range(3)]
    other = KafkaPartition("0a1b2c3d", 1)
    restored = restore_contracts(connection, made.name, versions, {SOURCE: {2: 10, 3: 20}, other: {3: 7}}, "me", "why")
    assert (restored.contract_version, restored.versions) == (3, tuple(versions))
    assert restored.cutovers == Cutovers(3, {SOURCE: {2: 10, 3: 20}, other: {3: 7}})
    assert read_registered(connection, made.name) == restored

    def run(start: int, end: int, version: int, source: KafkaPartition = SOURCE) -> Run:
        return Run(OffsetRange(source, start, end), ((0, Digest(end - start, start)),), None, None, version=version)

    layer = (run(0, 10, 1), run(12, 20, 2), run(0, 7, 2, other), run(20, 25, 3))
    contents = RawContents((layer,), (run(3, 4, 2), run(5, 6, 3)))
    assert find_read_nowhere(contents) == ()
    assert find_read_nowhere(replace(contents, layers=(layer[1:],))) == (run(3, 4, 2).offsets, run(5, 6, 3).offsets)
    with as_driver(connection, made.name, "test") as epoch:
        empty = [OffsetRange(SOURCE, 10, 12), OffsetRange(SOURCE, 25, 26)]
        write_ledger(connection, epoch, restored, [FILE], contents, KnownLogs(empty=empty))
    rows = connection.execute(
        "SELECT b.contract_version AS v, r.kafka_partition AS p, r.start_offset AS s, r.end_offset AS e "
        "FROM onceover.batch b JOIN onceover.batch_range r USING (batch_id) WHERE b.pipeline = %s "
        "AND b.who IS NULL ORDER BY 1, 2, 3",
        [made.name],
    ).fetchall()
    assert [tuple(row.values()) for row in rows] == [
        (1, 0, 0, 10), (2, 0, 10, 12), (2, 0, 12, 20), (2, 1, 0, 7), (3, 0, 20, 25), (3, 0, 25, 26),
    ]  # fmt: skip
    released = {each.version: each.ranges for each in list_releases(connection, made.name)}
    assert released == {2: (run(3, 4, 2).offsets,), 3: (run(5, 6, 3).offsets,)}
