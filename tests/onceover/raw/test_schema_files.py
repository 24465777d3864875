"""Schemas beside raw: kept once, before they are used, and never asked for twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.folder_store import FolderStore

from onceover.config import registry
from onceover.errors import ConfigurationError, RegistryAwayError, TerminalError
from onceover.formats.undecodable import UndecodableError
from onceover.raw import schema_files
from onceover.raw.schema_files import SchemaFiles

SCHEMA = '{"type": "string"}'
GUID = "89791762-2336-4186-9674-299b90a802e2"
ANSWERS: dict[str, tuple[int, str]] = {
    "/schemas/ids/7": (200, '{"schema": "{\\"type\\": \\"string\\"}"}'),
    "/schemas/ids/8": (200, '{"schema": "syntax = 1", "schemaType": "PROTOBUF"}'),
    "/schemas/ids/9": (200, '{"schema": "\\"a.B\\"", "references": [{"name": "a.B", "subject": "b", "version": 1}]}'),
    "/schemas/ids/10": (500, '{"error_code": 50001, "message": "no"}'),
    "/schemas/ids/11": (401, '{"error_code": 40101, "message": "who?"}'),
    "/schemas/ids/12": (200, "no JSON"),
    "/schemas/ids/13": (200, "{}"),
    "/schemas/ids/14": (200, '{"schema": 5}'),
    "/schemas/ids/15": (200, '{"schema": ""}'),
    "/schemas/ids/16": (404, "<html>not found</html>"),
    "/schemas/ids/17": (404, '{"error_code": 404, "message": "HTTP 404 Not Found"}'),
    "/schemas/ids/18": (200, '{"schema": "\\"int\\"", "schemaType": null}'),
    f"/schemas/guids/{GUID}": (200, '{"schema": "{\\"type\\": \\"string\\"}"}'),
}


class Answering(BaseHTTPRequestHandler):
    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked.append((path, self.headers.get("Authorization")))
        status, body = ANSWERS.get(path, (404, '{"error_code": 40403, "message": "Schema not found"}'))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Answering.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SchemaFiles:
    monkeypatch.setattr(schema_files, "_read", {})
    monkeypatch.setattr(schema_files, "open_store", lambda address: FolderStore(address))
    monkeypatch.setattr(registry, "_not_found", {})
    return SchemaFiles(str(tmp_path), "/raw/rides/schemas", "avro")


def forget() -> None:
    schema_files._read.clear()


def test_schema_is_kept_and_not_asked_for_again(files: SchemaFiles, url: str) -> None:
    assert files.ask(url, keep=True).read(7) == SCHEMA
    forget()
    assert files.read(7) == SCHEMA
    assert files.ask(url, keep=True).read(7) == SCHEMA
    assert files.list_names() == {"7"}
    assert len(Answering.asked) == 1


def test_schema_of_a_guid_is_kept_too(files: SchemaFiles, url: str) -> None:
    assert files.ask(url, keep=True).read(GUID) == SCHEMA
    forget()
    assert files.read(GUID) == SCHEMA
    assert files.list_names() == {GUID}
    with pytest.raises(UndecodableError, match="schema 89791762-2336-4186-9674-000000000000 is not in the registry"):
        files.ask(url, keep=True).read("89791762-2336-4186-9674-000000000000")


def test_type_that_is_not_said_is_avro(files: SchemaFiles, url: str) -> None:
    assert files.ask(url, keep=True).read(18) == '"int"'


def test_sample_keeps_nothing(files: SchemaFiles, url: str) -> None:
    assert files.ask(url, keep=False).read(7) == SCHEMA
    assert files.list_names() == set()


@pytest.mark.parametrize(
    ("schema_id", "why"),
    [
        (99, "schema 99 is not in the registry"),
        ((1 << 24) - 1, "schema 16777215 is not in the registry"),
        (1 << 24, "schema with an ID of 32 bits is not in the registry"),
        (8, "schema 8 is one of protobuf"),
        (9, "schema 9 refers to other subjects' schemas"),
    ],
)
def test_what_cannot_be_read_is_for_quarantine(files: SchemaFiles, url: str, schema_id: int, why: str) -> None:
    with pytest.raises(UndecodableError, match=why):
        files.ask(url, keep=True).read(schema_id)
    assert files.list_names() == set()


def test_missing_id_is_not_asked_for_at_each_record(files: SchemaFiles, url: str) -> None:
    for _ in range(3):
        with pytest.raises(UndecodableError):
            files.ask(url, keep=True).read(99)
    assert len(Answering.asked) == 1


@pytest.mark.parametrize("schema_id", [10, 11, 12, 13, 14, 15, 16, 17])
def test_other_answers_make_records_wait(files: SchemaFiles, url: str, schema_id: int) -> None:
    with pytest.raises(RegistryAwayError, match=f"schema {schema_id} is not known yet"):
        files.ask(url, keep=True).read(schema_id)
    assert files.list_names() == set()


def test_registry_that_is_gone_makes_records_wait(files: SchemaFiles) -> None:
    with pytest.raises(RegistryAwayError, match=r"http://127\.0\.0\.1:9 does not give it"):
        files.ask("http://127.0.0.1:9", keep=True).read(7)


def test_schema_that_raw_lacks_is_an_error_for_repairs_only(files: SchemaFiles) -> None:
    with pytest.raises(TerminalError, match=r"/raw/rides/schemas/7\.json is missing: put it back"):
        files.read(7)
    with pytest.raises(UndecodableError, match="schema 7 is not in raw"):
        SchemaFiles(files.address, files.folder, "avro", may_miss=True).read(7)


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b"\xff", b'{"id": 7, "schema": "x", "hash": "0"}'])
def test_damaged_file_is_named(files: SchemaFiles, url: str, damage: bytes) -> None:
    files.ask(url, keep=True).read(7)
    path = Path(files.address, "raw/rides/schemas/7.json")
    path.write_bytes(damage)
    forget()
    with pytest.raises(TerminalError, match=r"schemas/7\.json is not as it was written"):
        files.ask(url, keep=True).read(7)


def test_file_of_another_schema_is_named(files: SchemaFiles, url: str) -> None:
    files.ask(url, keep=True).read(7)
    path = Path(files.address, "raw/rides/schemas/7.json")
    path.rename(path.with_name("6.json"))
    forget()
    with pytest.raises(TerminalError, match=r"schemas/6\.json is not as it was written"):
        files.read(6)


def test_credentials_come_from_the_environment(
    files: SchemaFiles, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("me:hidden\n")
    secret.chmod(0o600)
    monkeypatch.setenv("ONCEOVER_REGISTRY_USER_INFO_FILE", str(secret))
    registry._open.cache_clear()
    files.ask(url, keep=True).read(7)
    ((_, sent),) = Answering.asked
    assert sent == "Basic bWU6aGlkZGVu"


@pytest.mark.parametrize("setting", ["SSL_CERT_FILE=/missing", "ONCEOVER_REGISTRY_USER_INFO=hidden"])
def test_wrong_setting_makes_records_wait(
    files: SchemaFiles, url: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*setting.split("="))
    registry._open.cache_clear()
    with pytest.raises(RegistryAwayError, match=r"schema 7 is not known yet, .*SSL_CERT_FILE names no cert") as raised:
        files.ask(url, keep=True).read(7)
    assert "hidden" not in str(raised.value)
    registry._open.cache_clear()


def test_two_processes_keep_the_first_text(files: SchemaFiles, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch_late(address: str, name: int, kind: str) -> str:
        text: Any = registry.fetch_schema(address, name, kind)
        forget()
        monkeypatch.setattr(schema_files, "fetch_schema", lambda *_: '"int"')
        assert files.ask(url, keep=True).read(name) == '"int"'
        forget()
        return str(text)

    monkeypatch.setattr(schema_files, "fetch_schema", fetch_late)
    assert files.ask(url, keep=True).read(7) == '"int"'


@pytest.mark.parametrize("url", ["me:hidden@registry:8081", "http://me:hidden@registry:8081", "file:///etc", "http://"])
def test_address_without_credentials_is_a_url(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEOVER_REGISTRY", url)
    with pytest.raises(ConfigurationError, match="ONCEOVER_REGISTRY is no URL") as raised:
        registry.locate_registry()
    assert "hidden" not in str(raised.value)
