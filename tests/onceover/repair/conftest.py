"""Fixtures of windows that lost raw: their ledger on PostgreSQL, files and Kafka that a test sets. Files on HDFS."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from bench import large_ledger
from bench.large_ledger import LargeLedger
from pyspark.sql import SparkSession
from tests.folder_store import FolderStore
from tests.onceover.repair.lost_ledger import NAME, Context

from onceover.config.endpoints import address
from onceover.errors import UnreachableError
from onceover.ledger.database import Connection
from onceover.raw.damaged_files import DamagedFiles
from onceover.raw.expired_list import ExpiredList
from onceover.raw.hdfs import connect_hdfs
from onceover.spark.session import choose_codegen
from onceover_local.stack import Stack


@pytest.fixture
def ledger(connection: Connection) -> Iterator[LargeLedger]:
    built = large_ledger.build(connection, NAME, 40)
    yield built
    large_ledger.drop(connection, built)


@pytest.fixture
def fake(connection: Connection, ledger: LargeLedger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Context:
    made = Context(connection, ledger.files, ledger.known)
    listed = ExpiredList(FolderStore(str(tmp_path)), made.layout)
    monkeypatch.setattr(ledger.files, "expired", listed, raising=False)
    monkeypatch.setattr(ledger.files, "read_compacted_lengths", lambda digests: {}, raising=False)

    def read_window(start: datetime) -> Iterator[bytes]:
        if start in made.unreadable:
            raise made.unreadable[start]
        yield b""

    def require_servers(self: object, path: str) -> None:
        if made.away:
            raise UnreachableError("1 DataNodes of HDFS do not answer")

    monkeypatch.setattr(ledger.files, "read_window", read_window, raising=False)
    monkeypatch.setattr(DamagedFiles, "require_servers", require_servers)
    monkeypatch.setattr(DamagedFiles, "was_written_since", lambda self, path, moment: made.put_back)
    monkeypatch.setattr(DamagedFiles, "list_unfinished", lambda self, path: list(made.unfinished))
    return made


@pytest.fixture
def folder(stack: Stack) -> Iterator[Callable[[str, bytes], str]]:
    """Write a file on HDFS, and return its path."""
    client, root = connect_hdfs(address("webhdfs")), f"/raw/t{uuid.uuid4().hex[:10]}"

    def write(name: str, data: bytes) -> str:
        client.write(f"{root}/{name}", data=data)
        return f"{root}/{name}"

    yield write
    client.delete(root, recursive=True)


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Interpret the queries of few lines, as a repair does, which takes a third of the time."""
    with choose_codegen(spark, 0):
        yield
