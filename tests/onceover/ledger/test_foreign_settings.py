"""Settings of a database that are not Onceover's, a publication, and a pooler: it works, or the error says why not."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import psycopg
import pytest
from bench.large_ledger import pipeline
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.onceover.ledger.noon_rows import BATCH, NOON, count_twice, repair

from onceover.config.endpoints import address
from onceover.errors import ConfigurationError
from onceover.ledger.aggregates import Fingerprint
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import connect, explain_failure, upgrade_schema
from onceover.model.contract import Column, Columns
from onceover.repair.revisions import restore_revision
from onceover_local.stack import Stack

pytestmark = pytest.mark.stack

COLUMNS = Columns(
    (Column("day", "date"), Column("at", "timestamptz")),
    (
        Column("events", "bigint", "sum"),
        Column("most", "double precision", "max"),
        Column("first", "timestamptz", "min"),
    ),
)
ROW = ("2026-02-01", "2026-03-01 12:00:01+00", "1", "0.30000000000000004", "2026-03-01 12:00:02+00")
FOREIGN = {
    "datestyle": "German", "intervalstyle": "sql_standard", "timezone": "Asia/Tokyo", "extra_float_digits": "-15",
    "bytea_output": "escape", "search_path": "nowhere", "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on", "statement_timeout": "1ms", "idle_in_transaction_session_timeout": "1ms",
    "transaction_timeout": "9s", "standard_conforming_strings": "off", "synchronous_commit": "off",
}  # fmt: skip
Database = Callable[..., str]


@pytest.fixture
def database(stack: Stack) -> Iterator[Database]:
    """Return a maker of empty databases of the test's own, with these settings and a publication of all tables."""
    made: list[str] = []
    at = partial(make_conninfo, address("postgres"), user="postgres")
    with psycopg.connect(at(dbname="postgres"), autocommit=True) as server:

        def make(settings: Mapping[str, str]) -> str:
            made.append(f"t{uuid.uuid4().hex[:10]}")
            server.execute(sql.SQL("CREATE DATABASE {} OWNER onceover").format(sql.Identifier(made[-1])))
            with psycopg.connect(at(dbname=made[-1]), autocommit=True) as own:
                own.execute("CREATE PUBLICATION everything FOR ALL TABLES")
            for name, value in settings.items():
                of_database = sql.SQL("ALTER DATABASE {} SET {} = {}")
                server.execute(of_database.format(*map(sql.Identifier, (made[-1], name)), sql.Literal(value)))
            return make_conninfo(address("postgres"), dbname=made[-1])

        yield make
        for name in made:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def live(own: str) -> list[Fingerprint]:
    """Return the fingerprints of a window's rows: counted twice, repaired, and restored."""
    upgrade_schema(own)
    with connect(own) as connection:
        registered = register_pipeline(connection, pipeline("foreign"), COLUMNS)
        table, found = registered.table, []
        count_twice(connection, registered, ROW)
        found.append(table.fingerprint(connection, NOON))
        repair(connection, registered, ROW)
        found.append(table.fingerprint(connection, NOON))
        restore_revision(connection, registered, NOON, None, "test", "a test")
        table.unstage(connection, BATCH)
        connection.execute("DELETE FROM onceover.revision_row")
        (setting,) = connection.execute("SELECT current_setting('synchronous_commit') AS synchronous").fetchall()
        assert setting["synchronous"] == "on"
        return [*found, table.fingerprint(connection, NOON)]


def test_settings_of_a_database_change_nothing(database: Database) -> None:
    counted, repaired, restored = live(database({}))

    assert counted == restored != repaired
    assert live(database(FOREIGN)) == [counted, repaired, restored]


def test_pooler_that_drops_settings_is_named(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(where: str, *, options: str, **how: object) -> psycopg.Connection:
        return original(where, **how)  # type: ignore[arg-type]

    original = psycopg.connect
    monkeypatch.setattr(psycopg, "connect", drop)
    with pytest.raises(ConfigurationError, match=r"is a connection pooler, .* Name PostgreSQL's own port"):  # noqa: SIM117
        with connect(address("postgres")):
            pass


@pytest.mark.parametrize(
    "refusal",
    [
        "FATAL:  unsupported startup parameter: options",  # PgBouncer 1.18
        "FATAL:  unsupported startup parameter in options: onceover.session",  # PgBouncer since 1.20
        "FATAL:  Feature not supported: RDS Proxy currently doesn't support command-line options.",
    ],
)
def test_pooler_that_refuses_settings_is_named(refusal: str) -> None:
    found = explain_failure("postgresql://ingest@pooler:6432/onceover", psycopg.OperationalError(refusal))

    assert str(found).startswith("pooler:6432/onceover is a connection pooler")
