"""A registry over HTTPS, under an authority of its own, that takes only clients with a password."""

from __future__ import annotations

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import requests
from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.integration.events import NOON_MS
from tests.integration.lane import Lanes
from tests.integration.program import as_json, run
from tests.integration.secure_kafka import make_certificates
from tests.integration.test_avro_topics import Writer, make_lane, make_schema

from onceover.config.endpoints import pipelines_folder
from onceover_local.stack.ports import LOOPBACK

pytestmark = [pytest.mark.stack, pytest.mark.rare]
USER_INFO = "me:hid:den"


class Guarded(BaseHTTPRequestHandler):
    """Passes requests with the password on to the registry at `url`."""

    url: ClassVar[str] = ""
    statuses: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        status, body = 401, b'{"error_code": 40101, "message": "Unauthorized"}'
        if self.headers.get("Authorization") == f"Basic {b64encode(USER_INFO.encode()).decode()}":
            answer = requests.get(self.url + self.path, timeout=30)
            status, body = answer.status_code, answer.content
        self.statuses.append(status)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def authority(registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of the authority; ONCEOVER_REGISTRY is the guarded registry's URL."""
    found = make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    monkeypatch.setattr(Guarded, "url", registry)
    Guarded.statuses.clear()
    server = ThreadingHTTPServer((LOOPBACK, 0), Guarded)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        monkeypatch.setenv("ONCEOVER_REGISTRY", f"https://{LOOPBACK}:{server.server_port}")
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_registry_over_https_takes_authority_and_password(
    lanes: Lanes, registry: str, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = make_lane(lanes)
    with SchemaRegistryClient({"url": registry}) as client:
        writer = Writer(client, lane, make_schema())
        lane.produce([writer.write(number) for number in range(10)], timestamp=NOON_MS)
    unknown = run("pipelines", "init", lane.topic, "--name", f"{lane.name}_https")
    assert (unknown.returncode, "ConnectError" in unknown.stderr) == (75, True), unknown.stderr
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    refused = run("pipelines", "init", lane.topic, "--name", f"{lane.name}_https")
    assert (refused.returncode, "does not give it (status 401)" in refused.stderr) == (75, True), refused.stderr

    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text(USER_INFO)
    monkeypatch.setenv("ONCEOVER_REGISTRY_USER_INFO_FILE", str(secret))
    try:
        drafted = as_json("pipelines", "init", lane.topic, "--name", f"{lane.name}_https")
        assert json.loads(Path(drafted["schema_files"][0]).read_text()) == make_schema()
        assert "is there already" in run("pipelines", "init", lane.topic, "--name", f"{lane.name}_https").stderr
        sampled = run("pipelines", "check", lane.name, "--sample", "10", "--json")
        sample = json.loads(sampled.stdout)["sample"]
        assert (sample["records"], sample["quarantined"]) == (10, 0)
    finally:
        for each in pipelines_folder().glob(f"{lane.name}_https.*"):
            each.unlink()
    checks = json.loads(run("doctor", "--json").stdout)
    assert [each["state"] for each in checks if each["check"] == "registry"] == ["fine"]
    assert set(Guarded.statuses) == {200, 401}
    said = unknown.stderr + refused.stderr + sampled.stdout + sampled.stderr
    assert USER_INFO not in said
    assert "hid:den" not in said
