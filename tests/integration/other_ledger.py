"""Other ledgers on the embedded PostgreSQL: a database of its own, empty or a copy, as the current ledger meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from onceover.config.endpoints import address
from onceover.ledger.database import upgrade_schema


@contextmanager
def open_server() -> Iterator[psycopg.Connection]:
    """Connect as the superuser to the database `postgres`."""
    superuser = address("postgres").replace("//onceover@", "//postgres@").replace("/onceover?", "/postgres?")
    with psycopg.connect(superuser, autocommit=True) as server:
        yield server


def copy_ledger() -> str:
    """Copy the current ledger's database; return the copy's address. A copy has the ledger's identity, and an OID of
    its own."""
    with psycopg.connect(address("postgres")) as current:
        template = current.info.dbname
    return _create(sql.SQL("CREATE DATABASE {} OWNER onceover TEMPLATE {}"), template)


def make_ledger() -> str:
    """Create an empty database with the ledger's schema; return its address."""
    where = _create(sql.SQL("CREATE DATABASE {} OWNER onceover"))
    upgrade_schema(where)
    return where


def _create(statement: sql.SQL, *more: str) -> str:
    name = f"l{uuid.uuid4().hex[:10]}"
    with open_server() as server:
        server.execute(statement.format(*map(sql.Identifier, (name, *more))))
        _, _, rest = address("postgres").partition("?")
    return f"{address('postgres').partition('?')[0].rpartition('/')[0]}/{name}?{rest}"
