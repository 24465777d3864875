"""The version of a database's schema: which one is migrated, accepted, refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.errors import UndefinedTable

from onceover.config.endpoints import address
from onceover.errors import ConfigurationError, TerminalError, TransientError
from onceover.ledger.database import SCHEMA_VERSION, connect, require_current, upgrade_schema
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


@pytest.fixture
def database(stack: Stack) -> Iterator[str]:
    """Yield the address of an empty database of the test's own."""
    name = f"t{uuid.uuid4().hex[:10]}"
    server, own = (make_conninfo(address("postgres"), user="postgres", dbname=each) for each in ("postgres", name))
    with connect(server, "test") as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield own
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_empty_database_is_refused_until_it_is_migrated(database: str) -> None:
    with connect(database) as connection:
        with pytest.raises(TerminalError, match=r"has no ledger: .*`onceover ledger migrate`, which makes an empty"):
            require_current(connection)
        upgrade_schema(database)
        upgrade_schema(database)
        require_current(connection)
        assert connection.execute("SELECT schema_version FROM onceover.ledger").fetchall() == [
            {"schema_version": SCHEMA_VERSION}
        ]


def read_after(database: str, statement: str, table: str) -> None:
    with connect(database) as connection:
        upgrade_schema(database)
        connection.execute(statement.encode())
        connection.execute(f"SELECT * FROM onceover.{table}".encode())


def test_ledger_dropped_under_a_process_is_named_lost(database: str) -> None:
    with pytest.raises(TerminalError, match=r"has no ledger: .* or then run `onceover ledger rebuild PIPELINE`"):
        read_after(database, "DROP SCHEMA onceover CASCADE", "driver")
    with pytest.raises(UndefinedTable):
        read_after(database, "SELECT 1", "no_table_of_ours")


@pytest.mark.parametrize(
    ("condition", "kind"),
    [("disk_full", TransientError), ("internal_error", TransientError), ("data_corrupted", TerminalError)],
)
def test_statement_that_the_server_cannot_do_is_told_in_words(
    database: str, condition: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=r"could not carry out a statement \(no room\), and changed nothing"):  # noqa: SIM117
        with connect(database) as connection:
            connection.execute(f"DO $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{condition}'; END $$".encode())


def test_database_that_does_not_exist_is_a_wrong_address(database: str) -> None:
    other = make_conninfo(database, dbname="t_unknown")
    with pytest.raises(ConfigurationError, match='answers, but database "t_unknown" does not exist; correct'):  # noqa: SIM117
        with connect(other):
            pass


@pytest.mark.parametrize(("column", "version"), [("schema_version", "4.1"), ("other", "unknown")])
def test_database_of_another_version_is_refused_and_kept(database: str, column: str, version: str) -> None:
    with connect(database) as connection:
        connection.execute("CREATE SCHEMA onceover")
        connection.execute(f"CREATE TABLE onceover.ledger AS SELECT '{version}' AS {column}".encode())
        refused = f"is at version {version}, and no migration leads from there.* set ONCEOVER_POSTGRES to an empty one"
        with pytest.raises(TerminalError, match=refused):
            require_current(connection)
        with pytest.raises(TerminalError, match=refused):
            upgrade_schema(database)
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_)'"
        ).fetchall()
        assert tables == [{"schemaname": "onceover", "tablename": "ledger"}]
        assert connection.execute("SELECT * FROM onceover.ledger").fetchall() == [{column: version}]
