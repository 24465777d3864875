"""Keys that try to be SQL, on the real ledger: they come back as the same bytes, and the canary table is whole."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pytest
from bench.large_ledger import pipeline
from tests.hostile.texts import CANARY, make_text, numbers
from tests.hostile.tries import few_or_all

from onceover.config.endpoints import address
from onceover.ingest.copy_text import format_rows
from onceover.ledger.aggregates import AggregateTable
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection, connect
from onceover.ledger.migrate import upgrade_schema
from onceover.model.contract import Column, Columns
from onceover.model.window import to_ms
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack

TRIES = 600
AT_ONCE = 20
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COLUMNS = Columns((Column("kind", "text"),), (Column("events", "bigint", "count"), Column("least", "text", "min")))


def make_keys(numbers: list[int], file: str) -> dict[str | None, str | None]:
    """Return distinct keys, one of them null, each with a value; PostgreSQL's text holds no NUL, nor half a pair."""
    keys: dict[str | None, str | None] = {None: None}
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


def read_rows(connection: Connection, table: AggregateTable) -> dict[str | None, str | None]:
    rows = connection.execute(f"SELECT kind, least FROM aggregates.{table.name}").fetchall()
    assert len({row["kind"] for row in rows}) == len(rows)
    return {row["kind"]: row["least"] for row in rows}


@few_or_all(TRIES)
def test_hostile_key_comes_back_from_the_ledger_unchanged(connection: Connection, count: int) -> None:
    connection.execute(f"CREATE TABLE public.{CANARY.lower()} AS SELECT 1 AS alive")
    table = register_pipeline(connection, pipeline(f"h{uuid.uuid4().hex[:10]}"), COLUMNS).table
    try:
        tries = list(numbers(count))
        for first in range(0, len(tries), AT_ONCE):
            keys = make_keys(tries[first : first + AT_ONCE], "/tmp/onceover-canary")
            rows = pa.table(
                {
                    "window_ms": pa.array([to_ms(NOON)] * len(keys), pa.int64()),
                    "kind": pa.array(keys, pa.string()),
                    "events": pa.array([1] * len(keys), pa.int64()),
                    "least": pa.array(keys.values(), pa.string()),
                }
            )
            lines = format_rows(rows).decode().removesuffix("\n").split("\n")
            with connection.transaction():
                connection.execute(f"DELETE FROM aggregates.{table.name}")
                assert table.stage(connection, "try", lines) == len(keys)
                assert table.increment(connection, "try") == len(keys)
                assert read_rows(connection, table) == keys, first
                as_added = table.fingerprint(connection, NOON)
                table.replace(connection, "try", NOON, first + 1)
                assert read_rows(connection, table) == keys, first
                assert table.compare(connection, "try", [NOON], 9) == {}
                assert table.fingerprint(connection, NOON) == as_added
        (row,) = connection.execute(f"SELECT sum(alive) AS alive FROM public.{CANARY.lower()}").fetchall()
        assert row["alive"] == 1
    finally:
        connection.execute(f"DROP TABLE public.{CANARY.lower()}")
