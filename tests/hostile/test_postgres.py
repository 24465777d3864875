"""Keys that try to be SQL, on the real ledger: they come back as the same bytes, and the canary table is whole."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import cycle, islice
from random import Random

import pyarrow as pa
import pytest
from bench.large_ledger import drop_pipeline, pipeline
from tests.hostile.texts import CANARY, make_text, numbers
from tests.hostile.tries import few_or_all

from onceover.config.endpoints import address
from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.claims import claim
from onceover.ledger.database import Connection, connect, upgrade_schema
from onceover.ledger.increments import insert_windows
from onceover.ledger.repair_requests import create_request, read_request
from onceover.lines.copy_text import format_rows
from onceover.model.contract import Column, Columns
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.rebuilt_window import RebuiltRange, RebuiltWindow
from onceover.model.window import to_ms
from onceover.repair.publish import publish
from onceover.repair.revisions import restore_revision
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack

TRIES = 600
AT_ONCE = 20
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
Rows = dict[str | None, str | None]
NUMBERS = (-0.0, 0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7976931348623157e308, 0.1)
COLUMNS = Columns(
    (Column("kind", "text"),),
    (Column("events", "bigint", "count"), Column("least", "text", "min"), Column("odd", "double precision", "max")),
)


def make_keys(numbers: list[int], file: str) -> Rows:
    """Return distinct keys, one of them null, each with a value; PostgreSQL's text holds no NUL, nor half a pair."""
    keys: Rows = {None: None}
    for number in numbers:
        texts = (make_text(f"postgres {side}", number, file) for side in ("key", "value"))
        key, value = (text.replace("\0", "").encode("utf-8", "replace").decode()[:2_000] for text in texts)
        keys[key] = value if Random(number).random() < 0.9 else None
    return keys


@pytest.fixture
def connection(stack: Stack) -> Iterator[Connection]:
    upgrade_schema(address("postgres"))
    with connect(address("postgres"), "test") as connection:
        yield connection


def draw_keys(count: int) -> Iterator[tuple[int, Rows]]:
    """Yield the tries' keys, some at once, by the number of the first."""
    tries = list(numbers(count))
    for first in range(0, len(tries), AT_ONCE):
        yield first, make_keys(tries[first : first + AT_ONCE], "/tmp/onceover-canary")


def read_rows(connection: Connection, table: AggregateTable) -> Rows:
    rows = connection.execute(f"SELECT kind, least FROM aggregates.{table.name}").fetchall()
    assert len({row["kind"] for row in rows}) == len(rows)
    return {row["kind"]: row["least"] for row in rows}


def stage_rows(connection: Connection, table: AggregateTable, stage: str, keys: Rows) -> None:
    """Stage a row a key in the window of noon."""
    rows = pa.table(
        {
            "window_ms": pa.array([to_ms(NOON)] * len(keys), pa.int64()),
            "kind": pa.array(keys, pa.string()),
            "events": pa.array([1] * len(keys), pa.int64()),
            "least": pa.array(keys.values(), pa.string()),
            "odd": pa.array(islice(cycle(NUMBERS), len(keys)), pa.float64()),
        }
    )
    lines = format_rows(rows).decode().removesuffix("\n").split("\n")
    assert table.stage(connection, stage, lines) == len(keys)


def repair(connection: Connection, registered: RegisteredPipeline, keys: Rows) -> None:
    """Claim the window, and publish these rows as a repair that rebuilt them from raw."""
    name = registered.name
    request_id = create_request(connection, name, "test", "a test", {NOON: []}, unblock=True)
    request = read_request(connection, name, request_id)
    (claimed,), _ = claim(connection, request)
    stage_rows(connection, registered.table, request.stage, keys)
    held = OffsetRange(KafkaPartition("0a1b2c3d", 0), 0, len(keys))
    digest = Digest(len(keys), 1, 2, 3, 4)
    rebuilt = RebuiltWindow(digest, len(keys), 90, (RebuiltRange(held, digest),))
    assert publish(connection, registered, request, claimed, rebuilt)


@pytest.fixture
def registered(connection: Connection) -> Iterator[RegisteredPipeline]:
    """A pipeline with the window of noon, beside a canary table, which is whole after the test."""
    connection.execute(f"CREATE TABLE public.{CANARY.lower()} AS SELECT 1 AS alive")
    registered = register_pipeline(connection, pipeline(f"h{uuid.uuid4().hex[:10]}"), COLUMNS)
    try:
        yield registered
        (row,) = connection.execute(f"SELECT sum(alive) AS alive FROM public.{CANARY.lower()}").fetchall()
        assert row["alive"] == 1
    finally:
        connection.execute(f"DROP TABLE public.{CANARY.lower()}")
        drop_pipeline(connection, registered)


@few_or_all(TRIES)
def test_hostile_key_comes_back_from_the_ledger_unchanged(
    connection: Connection, registered: RegisteredPipeline, count: int
) -> None:
    table = registered.table
    insert_windows(connection, registered.name, table, {NOON: table.windowing.window_at(NOON).end})
    for first, keys in draw_keys(count):
        with connection.transaction():
            connection.execute(f"DELETE FROM aggregates.{table.name}")
            stage_rows(connection, table, "try", keys)
            assert table.increment(connection, "try") == len(keys)
            assert read_rows(connection, table) == keys, first
            as_added = table.fingerprint(connection, NOON)
            table.replace(connection, "try", NOON, first + 1)
            assert read_rows(connection, table) == keys, first
            assert table.compare(connection, "try", [NOON], 9) == {}
            assert table.fingerprint(connection, NOON) == as_added


@few_or_all(TRIES)
def test_hostile_key_comes_back_from_a_kept_revision(
    connection: Connection, registered: RegisteredPipeline, count: int
) -> None:
    table = registered.table
    insert_windows(connection, registered.name, table, {NOON: table.windowing.window_at(NOON).end})
    proved: Rows = {}
    for first, keys in draw_keys(count):
        before, proved = proved, keys
        repair(connection, registered, proved)
        assert read_rows(connection, table) == proved, first
        fingerprint = table.fingerprint(connection, NOON)
        undone = restore_revision(connection, registered, NOON, None, "test", "it was right")
        assert read_rows(connection, table) == before, first
        assert undone.rows == len(before)
        redone = restore_revision(connection, registered, NOON, undone.revision - 1, "test", "it was not")
        assert read_rows(connection, table) == proved, first
        assert redone.rows == len(proved)
        assert table.fingerprint(connection, NOON) == fingerprint, first
