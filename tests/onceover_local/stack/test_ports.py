from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onceover_local.stack.ports import LOOPBACK, Ports, is_free


@contextmanager
def listening_on(port: int) -> Iterator[None]:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((LOOPBACK, port))
        server.listen()
        yield


def test_port_is_kept_as_long_as_it_is_free(tmp_path: Path) -> None:
    Ports(tmp_path / "ports.json").settle(("kafka", "postgres"))
    before = Ports(tmp_path / "ports.json").read_all()
    Ports(tmp_path / "ports.json").settle(("postgres", "kafka"))
    assert Ports(tmp_path / "ports.json").read_all() == before
    assert len(set(before.values())) == 2


def test_port_taken_by_another_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    ports = Ports(tmp_path / "ports.json")
    ports.settle(("kafka", "postgres"))
    before = ports.read_all()
    with listening_on(before["kafka"]):
        ports.settle(("kafka", "postgres"))
    assert ports["kafka"] != before["kafka"]
    assert ports["postgres"] == before["postgres"]


def test_unreadable_file_of_ports_costs_only_the_ports(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('{"kafka": 12')
    ports = Ports(tmp_path / "ports.json")
    ports.settle(("kafka",))
    assert is_free(ports["kafka"])


def test_port_with_only_ended_connections_is_free() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((LOOPBACK, 0))
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)):
            accepted, _ = server.accept()
            accepted.close()  # the server's side ends first, so its port stays in TIME_WAIT
    assert is_free(port)
