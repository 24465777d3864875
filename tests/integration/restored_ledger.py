"""A backup of the ledger, and the ledger restored from it: another database, which takes the raw root over."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql
from tests.integration.lane import Lane
from tests.integration.program import run

from onceover.config.endpoints import address


@contextmanager
def backed_up() -> Iterator[Callable[[Lane], None]]:
    """Copy the ledger's database as it is now; yield a function that restores it for a lane, until the block ends."""
    name, own = f"backup_{uuid.uuid4().hex[:10]}", address("postgres")
    superuser = own.replace("//onceover@", "//postgres@").replace("/onceover?", "/postgres?")
    with psycopg.connect(superuser, autocommit=True) as server:
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE onceover OWNER onceover STRATEGY wal_log").format(sql.Identifier(name))
        )
        with pytest.MonkeyPatch.context() as patch:

            def restore(lane: Lane) -> None:
                patch.setitem(os.environ, "ONCEOVER_POSTGRES", own.replace("/onceover?", f"/{name}?"))
                done = run("ledger", "take-root", lane.name, "--reason", "restored from a backup")
                assert done.returncode == 0, done.stderr

            yield restore
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
