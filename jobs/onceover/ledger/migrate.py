"""The migration of the ledger's schema, apart from `database` because importing Alembic takes a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from psycopg.rows import TupleRow, tuple_row
from sqlalchemy import create_engine, text

from onceover.ledger.database import HEAD, connect, open_session, read_version, require_migration

_LOCK = 0x6F6E6365  # any constant: an advisory lock's name, so that two first starts do not race


def _open(address: str) -> psycopg.Connection[TupleRow]:
    """Open a connection as SQLAlchemy needs it, with the settings that all have."""
    connection: psycopg.Connection[Any] = open_session(address, "onceover migrate")
    connection.row_factory = tuple_row
    connection.autocommit = False
    return connection


def upgrade_schema(address: str) -> None:
    """Bring the ledger's schema to this code's version, once even if two processes start together.

    Raises TerminalError, and writes nothing, if no migration leads from the ledger's version to this code's.
    """
    # Under the lock alone: `CREATE SCHEMA IF NOT EXISTS` of two at once collides in the catalogue.
    with connect(address, "onceover migrate") as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        version = read_version(connection)
        if version == HEAD:
            return
        require_migration(connection, version)
        connection.execute("CREATE SCHEMA IF NOT EXISTS onceover")
    engine = create_engine("postgresql+psycopg://", creator=lambda: _open(address))
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    with engine.connect() as alchemy:
        alchemy.execute(text("SELECT pg_advisory_lock(:name)"), {"name": _LOCK})
        alchemy.commit()
        config.attributes["connection"] = alchemy
        command.upgrade(config, "head")
        alchemy.commit()
    engine.dispose()
