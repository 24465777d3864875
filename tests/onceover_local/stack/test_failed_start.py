"""A start that fails halfway stops the processes that it started, and prints the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.own_stack import folder_of_this_session

from onceover_local.stack import Stack
from onceover_local.stack.process import ServerError

pytestmark = [pytest.mark.stack, pytest.mark.rare]


@pytest.fixture
def local() -> Iterator[Path]:
    with folder_of_this_session() as folder:
        yield folder / "stack"
        Stack(folder / "stack").remove()


@pytest.fixture
def broken_java(tmp_path: Path, local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only `java`: it fails once PostgreSQL, which needs none, is running."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    servers = " -o ".join(f"-e '{stack}/postgres/data/postmaster.pid'" for stack in (local, local / "demo"))
    waits = f"for _ in $(seq 600); do if [ {servers} ]; then break; fi; sleep 0.05; done"
    java.write_text(f"#!/bin/sh\n{waits}\necho first line\necho 'Error: this Java is broken'\nexit 3\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{java.parent}:{os.environ['PATH']}")


def test_failed_start_stops_what_it_started_and_shows_the_log(local: Path, broken_java: None) -> None:
    said: list[tuple[str, str]] = []
    stack = Stack(local)
    stack.up({"postgres"})
    with pytest.raises(ServerError, match=r"formatting of .* failed .3.: Error: this Java is broken .log: .*kafka.log"):
        stack.up({"postgres", "kafka"}, lambda part, what: said.append((part, what)))
    assert ("", "first line") in said
    assert ("", "Error: this Java is broken") in said
    assert [part.state for part in stack.list_statuses() if part.name == "postgres"] == ["up"], "it ran before"
    stack.down()

    said.clear()
    with pytest.raises(ServerError):
        stack.up({"postgres", "kafka"}, lambda part, what: said.append((part, what)))
    assert {part.state for part in stack.list_statuses()} == {"down"}
    assert ("stack", "the start failed; stops the parts that it started: postgres") in said
    assert ("postgres", "is down") in said


def test_demo_that_ends_early_says_what_failed_and_how_to_go_on(local: Path, broken_java: None) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "onceover_demo"],
        env={**os.environ, "ONCEOVER_LOCAL": str(local)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 75
    assert "The demo ended early: " in said
    assert "Error: this Java is broken" in said
    assert f"Each server's log is in {local}/demo/log. Fix the cause and run the same command again" in said
    assert "compared with the oracle" not in said
    assert (local / "demo" / "report.json").exists()
    assert {part.state for part in Stack(local / "demo").list_statuses()} == {"down"}
    Stack(local / "demo").remove()
