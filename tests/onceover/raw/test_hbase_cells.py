"""Connections to HBase's Thrift server, which closes those that are idle for a minute."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import happybase
import pytest

from onceover.raw import hbase_table
from onceover.raw.hbase_cells import TABLE, Cells


class Server:
    """A Thrift server with the table, that holds no row but `a` and `b`."""

    def __init__(self) -> None:
        self.now, self.opened, self.closed = 0.0, 0, 0

    def connect(self, host: str, port: int, timeout: int) -> Any:
        self.opened += 1
        client = SimpleNamespace(get=lambda *_: [])
        connection = SimpleNamespace(tables=lambda: [TABLE.encode()], close=self.close, client=client)
        connection.table = lambda name: SimpleNamespace(connection=connection, scan=self.scan)
        return connection

    def close(self) -> None:
        self.closed += 1

    def scan(self, **_: object) -> Iterator[tuple[bytes, dict[bytes, tuple[bytes, int]]]]:
        yield from ((row, {b"d:b": (b"value", 0)}) for row in (b"a", b"b"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(happybase, "Connection", made.connect)
    monkeypatch.setattr(hbase_table, "monotonic", lambda: made.now)
    return made


def test_idle_connection_is_replaced_before_a_request(server: Server) -> None:
    cells = Cells("127.0.0.1:9")
    for server.now in (0.0, 19.0, 38.0):
        cells.get("row")
    assert (server.opened, server.closed) == (1, 0), "it is in use"
    server.now = 60.0
    cells.get("row")
    assert (server.opened, server.closed) == (2, 1)


def test_connection_of_a_scan_is_kept(server: Server) -> None:
    cells = Cells("127.0.0.1:9")
    scan = cells.scan("a", "c")
    assert next(scan)[0] == "a"
    server.now = 60.0
    cells.get("row")
    assert [row for row, _ in scan] == ["b"]
    assert server.opened == 1
    server.now = 120.0
    cells.get("row")
    assert server.opened == 2, "no scan is open any more"
