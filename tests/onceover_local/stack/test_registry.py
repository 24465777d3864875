"""The schema registry on the session's stack, as Confluent's client sees it, through stops, kills and a pause."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable

import pytest
import requests
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from tests.frozen import frozen
from tests.listening import LOOPBACKS, list_heard
from tests.own_stack import ROOT, folder_of_this_session
from tests.programs import run_python

from onceover.config import endpoints
from onceover_local.stack import Stack
from onceover_local.stack.process import ServerError

pytestmark = pytest.mark.stack


@pytest.fixture
def subject() -> str:
    """Return a subject of the test's own."""
    return f"s{uuid.uuid4().hex}-value"


def make_schema(subject: str, *fields: str) -> Schema:
    """Return a schema that no other subject has: equal ones share an ID."""
    record = {"type": "record", "name": subject.partition("-")[0]}
    return Schema(json.dumps({**record, "fields": [{"name": each, "type": "long"} for each in fields]}), "AVRO")


def register(url: str, subject: str, *fields: str) -> int:
    with SchemaRegistryClient({"url": url}) as client:
        registered: int = client.register_schema(subject, make_schema(subject, *fields))
    return registered


def read_fields(url: str, schema_id: int) -> list[str]:
    """Return the fields of the schema with that ID, by a client that has nothing cached."""
    with SchemaRegistryClient({"url": url}) as client:
        text = client.get_schema(schema_id).schema_str
    assert text is not None
    return [field["name"] for field in json.loads(text)["fields"]]


def test_registered_schema_is_found_by_its_id(registry: str, subject: str) -> None:
    first, second = register(registry, subject, "a"), register(registry, subject, "a", "b")
    assert first != second
    assert register(registry, subject, "a") == first, "the same schema"
    assert read_fields(registry, first) == ["a"]
    assert read_fields(registry, second) == ["a", "b"]
    with SchemaRegistryClient({"url": registry}) as client:
        assert client.get_versions(subject) == [1, 2]
        assert client.get_latest_version(subject).schema_id == second


@pytest.mark.rare
@pytest.mark.parametrize("end", [Stack.stop_part, Stack.kill_part])
def test_id_outlives_the_process(registry: str, stack: Stack, subject: str, end: Callable[..., object]) -> None:
    """A kill follows at once: what was answered is in the file."""
    kept = register(registry, subject, "a")
    end(stack, "registry")
    assert stack.start_part("registry")
    assert endpoints.address("registry") == registry
    assert read_fields(registry, kept) == ["a"]
    assert register(registry, subject, "a") == kept
    assert register(registry, subject, "a", "b") > kept, "no ID is issued twice"


@pytest.mark.rare
def test_paused_registry_is_unready_and_goes_on(registry: str, stack: Stack, subject: str) -> None:
    def read_state() -> str:
        return {part.name: part.state for part in stack.list_statuses()}["registry"]

    kept = register(registry, subject, "a")
    with frozen(stack.find_pid("registry")):
        assert read_state() == "unready"
        said: list[str] = []
        with pytest.raises(ServerError, match="is paused by a signal; end it with `onceover stack down`, then"):
            stack.up({"registry"}, lambda _, what: said.append(what))
        assert said[0] == "runs, and does not answer; waits up to 120 s"
    assert read_fields(registry, kept) == ["a"]
    assert read_state() == "up"


def test_registry_listens_on_loopback_only(registry: str, stack: Stack) -> None:
    heard = list_heard([stack.find_pid("registry")])
    assert heard
    assert set(heard) <= LOOPBACKS


@pytest.mark.rare
def test_command_starts_the_registry_alone() -> None:
    with folder_of_this_session() as local:
        environment = {**os.environ, "ONCEOVER_LOCAL": str(local), "ONCEOVER_HOME": str(ROOT), "COLUMNS": "200"}
        command = ("-c", "from onceover.cli import main; main()", "stack", "up", "registry")
        said = run_python(*command, environment=environment)
        (up,) = [part for part in Stack(local).list_statuses() if part.state == "up"]
        assert up.name == "registry"
        assert up.address in said
        assert Stack(local).down() == ["registry"]


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "http://localhost:8888"])
def test_registry_refuses_a_foreign_page(registry: str, subject: str, origin: str) -> None:
    url, body = f"{registry}/subjects/{subject}/versions", make_schema(subject, "a").schema_str
    answer = requests.post(url, json={"schema": body}, headers={"Origin": origin}, timeout=30)
    assert answer.status_code == 403
    assert requests.get(url, timeout=30).status_code == 404
