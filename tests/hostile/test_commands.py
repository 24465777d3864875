"""Each command of the CLI with hostile arguments: exit 2, 75 or 78, one printable line, and nothing is started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.hostile.canaries import watching
from tests.hostile.texts import CANARY, SEEN, WORDS, make_text, numbers
from tests.hostile.tries import few_or_all
from typer.core import TyperArgument, TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from onceover.cli.app import app
from onceover.cli.lazy import LazyCommand
from onceover.config import endpoints

TRIES = 500
LOOKERS = ("doctor", "stack", "metrics")
"""They look at this machine, or serve, whatever they are given, unless that is too much."""
STARTERS = (("ingest",), ("pipelines", "check"))
"""They start Spark for a pipeline that is there, and need no server for that."""
TOML = """
[contract]
topic = "things"
window_minutes = 60
schema = "at STRING, place STRING"
event_time = "to_timestamp(value.at)"
[contract.keys]
place = "value.place"
[contract.measures]
things = { count = "*" }
"""


def list_commands(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield each command's words and parameters."""
    context: Any = None  # neither listing nor finding reads it
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from list_commands(command, (*path, name))
        elif isinstance(command, LazyCommand):
            yield (*path, name), command.load().params


def make_words(number: int, file: str, path: tuple[str, ...], params: list[Any]) -> list[str]:
    """Return the command with hostile arguments among valid ones; at least one is hostile."""
    random = Random(f"words {number}")

    def choose(at: int) -> str:
        hostile = make_text("cli", number * 20 + at, file, as_argument=True)
        if path in STARTERS:
            return f"x{hostile}"
        return random.choice(WORDS) if random.random() < 0.3 else hostile

    words = list(path)
    for at, param in enumerate(params):
        if isinstance(param, TyperArgument):
            words.append(choose(at))
        elif random.random() < 0.4:
            words += [param.opts[0]] if getattr(param, "is_flag", False) else [param.opts[0], choose(at)]
    more = path[0] in LOOKERS or random.random() < 0.3
    return [*words, make_text("cli", number * 20 + 19, file, as_argument=True)] if more else words


@few_or_all(TRIES)
def test_command_with_hostile_arguments_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "things.toml").write_text(TOML)
    for part in endpoints.PARTS:
        monkeypatch.delenv(f"ONCEOVER_{part.upper()}", raising=False)
    for name, value in {"HOME": tmp_path, "LOCAL": tmp_path / ".local"}.items():
        monkeypatch.setenv(f"ONCEOVER_{name}", str(value))
    monkeypatch.delenv("ONCEOVER_PIPELINES", raising=False)
    monkeypatch.setenv(CANARY, SEEN)
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    commands = list(list_commands(root))
    assert len(commands) >= 25
    runner, canary = CliRunner(), tmp_path / "canary"

    def attempt(number: int) -> str | None:
        path, params = commands[number % len(commands)]
        words = make_words(number, str(canary), path, params)
        with watching(tmp_path, refuse=True) as seen:
            done = runner.invoke(app, words, prog_name="onceover")
        shown = [ascii(word)[:60] for word in words]
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            return f"{shown}: {type(done.exception).__name__}: {str(done.exception)[:150]}"
        if done.exit_code not in (2, 75, 78) and not is_harmless(words, done.exit_code):
            return f"{shown}: exit {done.exit_code}: {done.output[:150]!r}"
        lines = done.stderr.splitlines()
        if done.exit_code and (len(lines) != 1 or not lines[0].isprintable()):
            return f"{shown}: said {done.stderr[:300]!r}"
        if "1337" in done.output or SEEN in done.output:
            return f"{shown}: something was evaluated: {done.output[:150]!r}"
        return f"{shown}: {seen[:3]}" if seen else None

    wrong = {n: found for n in numbers(count) if (found := attempt(n))}
    assert wrong == {}
    assert not canary.exists()
    assert os.environ[CANARY] == SEEN


def is_harmless(words: list[str], code: int) -> bool:
    """Return whether the command only shows something, help or the list of pipelines, or has no argument at all: `--`
    ends options, and `stack down` finds nothing to stop."""
    return code == 0 and ("--help" in words or words[:2] == ["pipelines", "list"] or words == ["stack", "down", "--"])
