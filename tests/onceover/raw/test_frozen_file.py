"""Reads of a frozen file end in its bytes or in an error that names it, whatever a DataNode does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from onceover.errors import TerminalError, UnreachableError
from onceover.raw import hdfs
from onceover.raw.frozen_file import FrozenFiles

TEXT = b"".join(b"%d\n" % n for n in range(5000))
PATH = "/raw/t/2026-03-01/1200.log"
DEAD = 1  # a port where nothing listens


class Hdfs(ThreadingHTTPServer):
    """A NameNode and its DataNode in one, with one file; `send` writes the bytes that were asked for. What `redirects`
    sends OPEN on to another path, as a NameNode does, `dead` times to a DataNode that has died."""

    daemon_threads = True

    def __init__(self, *, redirects: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.redirects = redirects
        self.redirected = 0
        self.dead = 0
        self.file: bytes | None = TEXT
        self.asked: list[dict[str, str]] = []
        self.left_out: list[str | None] = []
        self.send: Callable[[_Handler, bytes], None] = lambda handler, data: handler.write(data)
        self.ended = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def name_datanode(self, query: dict[str, str]) -> str:
        if self.dead:
            self.dead -= 1
            self.left_out.append(query.get("excludedatanodes"))
            return f"http://127.0.0.1:{DEAD}"
        return self.address


class _Handler(BaseHTTPRequestHandler):
    server: Hdfs
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        file = self.server.file
        if file is None:
            self.refuse(404, "FileNotFoundException", f"File does not exist: {PATH}")
        elif query["op"] == "GETFILESTATUS":
            self.answer(200, json.dumps({"FileStatus": {"length": len(file)}}).encode())
        elif self.server.redirects and "datanode" not in query:
            self.server.redirected += 1
            self.answer(307, b"", f"{self.server.name_datanode(query)}{self.path}&datanode=1")
        else:
            self.server.asked.append(query)
            start, length = int(query.get("offset", 0)), int(query.get("length", len(file)))
            if start >= len(file):
                self.refuse(403, "IOException", f"Offset={start} out of the range [0, {len(file)}); OPEN, path={PATH}")
                return
            data = file[start : start + length]
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(OSError):
                self.server.send(self, data)

    def write(self, data: bytes) -> None:
        self.wfile.write(data)

    def refuse(self, status: int, exception: str, message: str) -> None:
        self.answer(status, json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode())

    def answer(self, status: int, body: bytes, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the log empty."""


@pytest.fixture(params=[False, True], ids=["straight", "redirected"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hdfs]:
    monkeypatch.setattr(hdfs, "TIMEOUT", (5.0, 0.3))
    with Hdfs(redirects=request.param) as found:
        serving = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield found
        found.ended.set()
        found.shutdown()
        serving.join()


def read(server: Hdfs, length: int = len(TEXT), chunk: int = 1000) -> bytes:
    return b"".join(FrozenFiles(server.address).read_lines(PATH, length, chunk))


def test_file_is_read_by_one_request_to_its_frozen_length(server: Hdfs) -> None:
    assert read(server) == TEXT
    assert read(server, 12_345) == TEXT[:12_345], "bytes that were appended since are not asked for"
    assert [query["length"] for query in server.asked] == [str(len(TEXT)), "12345"]
    assert read(server, 0) == b""
    assert server.redirected == 2 * server.redirects


def test_server_that_refuses_once_is_asked_again(server: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FrozenFiles(server.address)
    assert [bytes(piece) for piece in files.read_lines(PATH, 2)] == [TEXT[:2]]
    refused = iter([True])
    do_get = _Handler.do_GET

    def refuse_once(handler: _Handler) -> None:
        if next(refused, False):
            handler.close_connection = True
        else:
            do_get(handler)

    monkeypatch.setattr(_Handler, "do_GET", refuse_once)
    assert [bytes(piece) for piece in files.read_lines(PATH, 4)] == [TEXT[:4]]


def test_read_that_ends_early_goes_on_where_it_stopped(server: Hdfs) -> None:
    server.send = lambda handler, data: handler.write(data[: len(data) // 2 + 1])
    assert read(server) == TEXT
    assert [int(query["offset"]) for query in server.asked][:2] == [0, len(TEXT) // 2 + 1]
    assert server.asked[1]["excludedatanodes"] == "127.0.0.1"


def test_read_that_ends_early_again_names_file_and_byte(server: Hdfs) -> None:
    server.send = lambda handler, data: handler.write(data[:100] if len(data) == len(TEXT) else b"")
    with pytest.raises(UnreachableError, match=rf"reading {PATH} stopped at byte 100 of {len(TEXT)}"):
        read(server)


def test_datanode_that_hangs_is_an_error_with_the_file(server: Hdfs) -> None:
    def hang(handler: _Handler, data: bytes) -> None:
        handler.write(data[:10])
        server.ended.wait()

    server.send = hang
    with pytest.raises(UnreachableError, match=rf"reading {PATH} stopped at byte \d+ .*TimeoutError.*hdfs fsck"):
        read(server, 11)


@pytest.mark.parametrize("left", [0, 1, 5000])
def test_file_shorter_than_frozen_is_an_error(server: Hdfs, left: int) -> None:
    server.file = TEXT[:left]
    with pytest.raises(TerminalError, match=f"{PATH} ends before byte {len(TEXT)}"):
        read(server)


def test_missing_file_is_an_error_with_its_name(server: Hdfs) -> None:
    server.file = None
    with pytest.raises(TerminalError, match=f"{PATH} is missing"):
        read(server)
    with pytest.raises(UnreachableError, match=r"HDFS at .* does not answer"):
        list(FrozenFiles("http://127.0.0.1:1").read_lines(PATH, 1))


def test_small_file_is_asked_of_another_datanode(server: Hdfs) -> None:
    server.dead = 2
    assert hdfs.SmallFiles(server.address).read(PATH) == TEXT
    assert server.left_out == [None, "127.0.0.1"] * server.redirects
    server.file = None
    assert hdfs.SmallFiles(server.address).read(PATH) is None


@pytest.mark.parametrize("server", [True], indirect=True)
def test_datanode_that_does_not_answer_is_named(server: Hdfs) -> None:
    server.dead = 100
    with pytest.raises(UnreachableError, match=rf"the DataNode at 127\.0\.0\.1:{DEAD} of HDFS at .* does not answer"):
        hdfs.SmallFiles(server.address).read(PATH)
    assert len(server.left_out) == 6


def test_name_node_that_does_not_answer_is_asked_once() -> None:
    with pytest.raises(UnreachableError, match=r"HDFS at http://127\.0\.0\.1:1 does not answer"):
        hdfs.SmallFiles("http://127.0.0.1:1").read(PATH)
