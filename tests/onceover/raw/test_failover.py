"""Two NameNodes of WebHDFS, one of which takes over from the other: servers that answer as HDFS does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import requests

from onceover.raw import failover
from onceover.raw.failover import NameNodeSession, split_asked
from onceover_local.stack.ports import LOOPBACK

AWAY = f"http://{LOOPBACK}:1"
STANDBY, ACTIVE, MISSING = "StandbyException", "", "FileNotFoundException"
Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a starter of NameNodes, by the errors that they answer one after the other, the last one for ever; or by
    the address to which they send a request on."""
    servers: list[HTTPServer] = []

    def start(*errors: str, sends_to: str = "") -> str:
        left = list(errors)

        class NameNodeHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(307 if sends_to else 403 if name else 200)
                if sends_to:
                    self.send_header("Location", sends_to)
                self.end_headers()
                self.wfile.write(json.dumps({"RemoteException": {"exception": name, "message": ""}}).encode())

            def log_message(self, *_: object) -> None:
                pass

        servers.append(HTTPServer((LOOPBACK, 0), NameNodeHandler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://{LOOPBACK}:{servers[-1].server_port}"

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


def ask(*namenodes: str) -> requests.Response:
    with NameNodeSession(";".join(namenodes)) as session:
        return session.get(f"{namenodes[0]}/webhdfs/v1/", timeout=5)


def test_request_goes_to_the_active_namenode(serve: Serve) -> None:
    assert ask(AWAY, serve(ACTIVE)).ok
    assert ask(serve(STANDBY), serve(ACTIVE)).ok
    assert ask(serve(MISSING), serve(ACTIVE)).status_code == 403, "the active one's answer"


def test_request_waits_until_a_standby_has_taken_over(serve: Serve) -> None:
    assert ask(AWAY, serve(STANDBY, STANDBY, ACTIVE)).ok


def test_request_without_any_active_namenode_ends(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failover, "FAILOVER_SECONDS", 0.0)
    assert not ask(serve(STANDBY), AWAY).ok
    with pytest.raises(requests.ConnectionError):
        ask(AWAY, f"{AWAY}1")


def test_single_namenode_gets_each_request_once(serve: Serve) -> None:
    assert not ask(serve(STANDBY, ACTIVE)).ok


def test_dead_datanode_is_no_failover(serve: Serve) -> None:
    with pytest.raises(requests.ConnectionError) as caught:
        ask(serve(ACTIVE, sends_to=f"{AWAY}/block"), serve(STANDBY))
    assert split_asked(caught.value).path == "/block"
