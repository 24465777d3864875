"""The registry's client with a server that answers without an end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from onceover.config import registry
from onceover.errors import RegistryAwayError


@pytest.fixture
def dripping() -> Iterator[tuple[str, Event]]:
    """A server that sends a blank every tenth of a second, and sets the event once its client has left."""
    is_left, is_over = Event(), Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while not is_over.wait(0.1):
                    self.wfile.write(b" ")
            except OSError:
                is_left.set()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", is_left
    is_over.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", [7, "89791762-2336-4186-9674-299b90a802e2"])
def test_answer_without_an_end_is_given_up(
    dripping: tuple[str, Event], monkeypatch: pytest.MonkeyPatch, name: int | str
) -> None:
    monkeypatch.setattr(registry, "_ANSWER_SECONDS", 1.0)
    url, is_left = dripping
    started = time.monotonic()

    with pytest.raises(RegistryAwayError, match=rf"schema {name} is not known yet, and .* \(TimeoutError\)"):
        registry.find_schema(url, name)

    assert time.monotonic() - started < 5
    assert is_left.wait(5), "the connection is closed, and the thread with it"
