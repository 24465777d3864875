"""Keys and measures that have the names of our own SQL: each word of it is a key and a measure on the real ledger."""

from __future__ import annotations

import ast
import re
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from bench.large_ledger import drop_pipeline, pipeline
from tests.onceover.ledger.noon_rows import BATCH, NOON, count_twice, repair

from onceover.config.contract_tables import MAX_KEYS, RESERVED
from onceover.ledger import aggregate_columns, aggregates, window_history
from onceover.ledger.catalog import RegisteredPipeline, register_pipeline
from onceover.ledger.database import Connection
from onceover.model.contract import Column, Columns
from onceover.model.pipeline import NAME
from onceover.repair.revisions import restore_revision

pytestmark = pytest.mark.stack


def list_words() -> list[str]:
    """Return each word of our SQL over tables of aggregates, without its first underscore, that the rule takes."""
    trees = [
        ast.parse(Path(str(module.__file__)).read_text()) for module in (aggregate_columns, aggregates, window_history)
    ]
    texts = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    queries = [text for text in texts if isinstance(text, str) and not re.search(r"[.;:] |[.]$", text)]  # no prose
    words = {word.lstrip("_") for query in queries for word in re.findall(r"\w+", query.lower())}
    return sorted(word for word in words - RESERVED if NAME.fullmatch(word))


@pytest.fixture
def pipelines(connection: Connection) -> Iterator[list[RegisteredPipeline]]:
    """The pipelines that a test registered, dropped after it."""
    registered: list[RegisteredPipeline] = []
    yield registered
    for each in registered:
        drop_pipeline(connection, each)


def register(connection: Connection, name: str, keys: Sequence[str], measures: Sequence[str]) -> RegisteredPipeline:
    columns = Columns(
        tuple(Column(key, "text") for key in keys), tuple(Column(measure, "bigint", "sum") for measure in measures)
    )
    return register_pipeline(connection, pipeline(name), columns)


def read_row(connection: Connection, registered: RegisteredPipeline) -> set[object]:
    (row,) = connection.execute(f"SELECT * FROM aggregates.{registered.name}").fetchall()
    assert all(row[key.name] == "a" for key in registered.columns.keys)
    return {row[measure.name] for measure in registered.columns.measures}


def test_words_of_our_sql_as_keys_and_measures_change_nothing(
    connection: Connection, pipelines: list[RegisteredPipeline]
) -> None:
    words = list_words()
    assert {"side", "stage", "t", "excluded", "select", "rows"} <= set(words)
    for first in range(0, len(words), MAX_KEYS):
        keys, others = words[first : first + MAX_KEYS], words[:first] + words[first + MAX_KEYS :]
        registered = register(connection, f"n{uuid.uuid4().hex[:10]}", keys, others)
        pipelines.append(registered)
        table = registered.table
        row = ["a"] * len(keys) + ["2"] * len(others)
        count_twice(connection, registered, row)
        assert read_row(connection, registered) == {4}
        assert list(table.compare(connection, BATCH, [NOON], 9)) == [NOON]
        repair_id = repair(connection, registered, row)
        assert read_row(connection, registered) == {2}
        assert table.compare(connection, BATCH, [NOON], 9) == {}
        proved = table.fingerprint(connection, NOON)
        changes = window_history.list_row_changes(connection, registered, NOON, repair_id, 9)
        assert changes is not None
        assert [(set(row["before"].values()), set(row["after"].values())) for row in changes["rows"]] == [({4}, {2})]
        restore_revision(connection, registered, NOON, None, "test", "a test")
        assert read_row(connection, registered) == {4}
        restore_revision(connection, registered, NOON, 1, "test", "a test")
        assert table.fingerprint(connection, NOON) == proved


def test_reserved_names_are_the_columns_that_our_tables_have(
    connection: Connection, pipelines: list[RegisteredPipeline]
) -> None:
    registered = register(connection, f"n{uuid.uuid4().hex[:10]}", ("kind",), ("events",))
    pipelines.append(registered)
    of_tables = connection.execute(
        "SELECT attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
        "JOIN pg_namespace n ON n.oid = relnamespace WHERE relname = %s AND nspname IN ('aggregates', 'staging')",
        [registered.name],
    )
    own = {row["attname"] for row in of_tables} - {"kind", "events"}

    assert {name for name in own if NAME.fullmatch(name)} == RESERVED - {"window_ms"}


def test_index_has_a_name_that_no_pipeline_can_have(
    connection: Connection, pipelines: list[RegisteredPipeline]
) -> None:
    first = f"n{uuid.uuid4().hex[:6]}"
    pipelines.append(register(connection, first, ("kind",), ("events",)))
    own = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'i' AND relname LIKE %s AND relname ~ '^[a-z][a-z0-9_]{0,40}$'",
        [f"%{first}%"],
    )

    assert own.fetchall() == []
