"""The databases and roles on the embedded server, which must exist before the ledger does."""

from __future__ import annotations

import psycopg
from psycopg import sql


def accepts_login(uri: str) -> bool:
    """Return whether the server accepts a login."""
    try:
        with psycopg.connect(uri, connect_timeout=2):
            return True
    except psycopg.Error:
        return False


def ensure(superuser_uri: str, name: str, password: str) -> None:
    """Create a role that may log in and nothing more, and a database of the same name that it owns, unless they exist;
    set the password."""
    role, database = sql.Identifier(name), sql.Identifier(name)
    with psycopg.connect(superuser_uri, autocommit=True, connect_timeout=5) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(password)))
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, role))
