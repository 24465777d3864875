from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onceover.cli import checks
from onceover.cli.checks import Outcome
from onceover.cli.doctor import side_by_side
from onceover.errors import UnreachableError


def fine() -> Iterator[Outcome]:
    yield Outcome("one", "fine", "well")


def test_a_part_that_hangs_is_named_in_time_and_what_it_said_before_is_kept() -> None:
    never = threading.Event()

    def hangs() -> Iterator[Outcome]:
        yield Outcome("two", "note", "so far")
        never.wait()

    begun = time.monotonic()
    found = side_by_side({"two": hangs, "one": fine}, 0.3)
    assert time.monotonic() - begun < 5
    assert [(each.check, each.state) for each in found] == [("two", "note"), ("two", "wrong"), ("one", "fine")]
    never.set()


def test_a_part_that_fails_is_told_and_holds_up_no_other() -> None:
    def fails() -> Iterator[Outcome]:
        yield from ()
        raise UnreachableError("it is down; start it")

    assert side_by_side({"two": fails, "one": fine}, 5) == [
        Outcome("two", "wrong", "it is down; start it"),
        Outcome("one", "fine", "well"),
    ]


def test_it_fails_and_says_what_to_set_where_nobody_said_where_anything_is(run: Any, home: Path) -> None:
    result = run("doctor", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    wrong = {each["check"] for each in found if each["state"] == "wrong"}
    assert wrong == {"Kafka", "HDFS", "PostgreSQL", "Airflow"}
    assert all("set ONCEOVER_" in each["what"] for each in found if each["check"] in wrong)


def test_a_mistake_in_a_toml_is_wrong(run: Any, home: Path) -> None:
    (home / "pipelines" / "other.toml").write_text("x = 1\n")
    found = json.loads(run("doctor", "--json").stdout)
    assert any(each["check"] == "pipelines" and each["state"] == "wrong" for each in found)


@pytest.mark.parametrize(
    ("said", "state"), [("17.0.9", "fine"), ("21.0.1", "fine"), ("11.0.2", "wrong"), ("1.8.0_402", "wrong")]
)
def test_an_old_java_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, state: str) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{said}\" 2024-01-01' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert [outcome.state for outcome in checks.java()] == [state]


def test_no_java_and_a_wrong_java_home_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert [outcome.state for outcome in checks.java()] == ["wrong", "wrong"]
