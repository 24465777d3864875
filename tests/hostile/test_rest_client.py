"""Airflow's REST client against a server that answers anything: our errors, and no secret to any other server."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

import pytest
from tests.hostile.texts import make_text, make_value, numbers
from tests.hostile.tries import bounded_memory, few_or_all, is_refused

from onceover_local.airflow_rest import AirflowRest

TRIES = 300
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
BOMB = gzip.compress(b" " * (300 << 20), 1)
"""An answer of 300 MiB, sent as 1.3 MiB."""


OK = b"HTTP/1.1 200 OK\r\n"
BROKEN = (
    b"", b"HTTP/1.1 200", OK + b"Content-Length: 100\r\n\r\n{", b"\x16\x03\x01\x00", b"SSH-2.0-x\r\n",
    OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 999 \x1b[2J\r\n\r\n",
    OK + b"Content-Length: -5\r\n\r\n", OK + b"X: y\r\n" * 200 + b"\r\n",
    OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
)  # fmt: skip


class Elsewhere(ThreadingHTTPServer):
    """A server to which the other one would like the client to turn; it remembers each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Listener)
        self.heard: list[str] = []


class Listener(BaseHTTPRequestHandler):
    server: Elsewhere

    def do_GET(self) -> None:
        self.server.heard.append(f"{self.command} {self.path} {dict(self.headers)}")
        self.send_error(404)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Hostile(ThreadingHTTPServer):
    """The server whose address the client has; a login succeeds in most tries, else no call would be answered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.number, self.asked, self.elsewhere = 0, 0, ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client hung up on an answer without end


class Handler(BaseHTTPRequestHandler):
    server: Hostile

    def do_GET(self) -> None:
        server = self.server
        server.asked += 1
        random = Random(f"answer {server.number} {server.asked}")
        with suppress(ValueError):
            self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 1 << 20))
        if self.path == "/auth/token" and random.random() < 0.8:
            self._send(201, json.dumps({"access_token": "t"}).encode())
        elif random.random() < 0.2:
            self._send(random.choice((301, 302, 303, 307, 308)), b"", {"Location": f"{server.elsewhere}{self.path}"})
        elif random.random() < 0.03:
            self._send(200, BOMB, {"Content-Encoding": "gzip"})
        elif random.random() < 0.15:
            self._break_off(random)
        else:
            self._send(random.choice((200, 200, 200, 201, 204, 400, 401, 403, 404, 422, 500, 503)), self._write(random))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _write(self, random: Random) -> bytes:
        """Return an answer in the form of the API with other values, or in none."""
        at = self.server.number * 100 + self.server.asked
        value, text = make_value("rest", at), make_text("rest text", at)
        rows = random.choice(([], [value], [{"dag_run_id": text, "state": value}], value))
        done = random.choice(("success", "failed", "success", value))
        whole: Any = {
            "dag_run_id": value, "id": value, "state": done, "completed_at": random.choice(("2013-01-01", value)),
            "total_entries": random.choice((0, 1, value, 1 << 60)), "dag_runs": rows, "task_instances": rows,
            "import_errors": value, "params": {"reason": value}, "detail": text, "value": random.choice((value, text)),
            "content": random.choice((value, [{"event": value}], text)),
            "metadatabase": random.choice((value, {"status": value})),
        }  # fmt: skip
        if random.random() < 0.3:
            whole = random.choice((value, [value], text, {text: value}))
        if random.random() < 0.1:
            plain = text.encode("utf-8", "replace")
            return random.choice((b"[" * 200_000, b'{"a":' * 200_000, b"\xff\xfe", b"", b"9" * 10_000, plain))
        return json.dumps(whole, default=str).encode()

    def _break_off(self, random: Random) -> None:
        self.wfile.write(random.choice(BROKEN))
        self.close_connection = True

    def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if status != 204:
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[tuple[Hostile, Elsewhere]]:
    hostile, elsewhere = Hostile(), Elsewhere()
    hostile.elsewhere = f"http://127.0.0.1:{elsewhere.server_port}"
    threads = [threading.Thread(target=each.serve_forever, args=(0.01,)) for each in (hostile, elsewhere)]
    for thread in threads:
        thread.start()
    yield hostile, elsewhere
    for each, thread in zip((hostile, elsewhere), threads, strict=True):
        each.shutdown()
        each.server_close()
        thread.join()


def list_calls(rest: AirflowRest, number: int) -> list[Callable[[], object]]:
    name = make_text("rest name", number)
    return [
        lambda: rest.healthy(), lambda: rest.ensure_pool(name, 1, "x"), lambda: rest.choices(name, "reason"),
        lambda: rest.import_errors(), lambda: rest.pause(name, True), lambda: rest.trigger(name, {"reason": name}),
        lambda: rest.backfill(name, NOON, NOON), lambda: rest.run(name, name), lambda: rest.runs(name, "manual"),
        lambda: rest.tasks(name, name), lambda: rest.result(name, name, "t"), lambda: rest.log(name, name, "t"),
        lambda: rest.clear(name, name, ["t"]), lambda: rest.wait_for_run(name, name, 0.0),
        lambda: rest.wait_for_backfill(1, 0.0), lambda: rest.wait_for_dag(name, 0.0),
    ]  # fmt: skip


@few_or_all(TRIES)
def test_rest_client_reports_any_answer_and_tells_nobody_else(servers: tuple[Hostile, Elsewhere], count: int) -> None:
    hostile, elsewhere = servers

    def attempt(number: int) -> str | None:
        hostile.number, hostile.asked = number, 0
        rest = AirflowRest(f"http://127.0.0.1:{hostile.server_port}", "admin", "a secret")
        calls = list_calls(rest, number)
        try:
            wrong = is_refused(calls[number % len(calls)], seconds=10)
        finally:
            rest.close()
        return f"call {number % len(calls)}: {wrong}" if wrong else None

    with bounded_memory(300):
        wrong = {n: found for n in numbers(count) if (found := attempt(n))}
    assert (wrong, elsewhere.heard) == ({}, [])
