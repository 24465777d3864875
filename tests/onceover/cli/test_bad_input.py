"""Bad input is reported in one line, with the exit code that `--help` promises, and nothing is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

RANGE = ("--from", "2013-01-01T00:00Z", "--to", "2013-01-02T00:00Z")
CASES = [
    (("windows", "nosuch"), "there is no pipeline 'nosuch'"),
    (("windows", "../things"), "there is no pipeline '../things'"),
    (("windows", "thing"), "did you mean `things`?"),
    (("explain", "nosuch", "2013-01-01T05:00Z"), "there is no pipeline"),
    (("repair", "nosuch", *RANGE, "--dry-run"), "there is no pipeline"),
    (("ingest", "nosuch"), "there is no pipeline"),
    (("ingest",), "name one pipeline, or give --all"),
    (("ingest", "things", "--all"), "name one pipeline, or give --all"),
    (("pipelines", "check", "nosuch", "--no-spark"), "there is no pipeline"),
    (("pipelines", "migrate", "nosuch", "--dry-run"), "there is no pipeline"),
    (("pipelines", "migrate", "things"), "a migration needs a reason"),
    (("explain", "things", "today"), "'today' is not a time with its zone"),
    (("explain", "things", "2013-13-01T05:00Z"), "is not a time"),
    (("explain", "things", "2013-01-01T05:00"), "is not a time with its zone"),
    (("explain", "things", "2013-01-01T05:00+24:00"), "is not a time with its zone"),
    (("explain", "things", "2013-01-01T05:30Z"), "the one that holds it starts at 2013-01-01T05:00Z"),
    (("explain", "things", "2999-01-01T05:00Z"), "in the future"),
    (("explain", "things", "2013-01-01T05:00Z'; DROP TABLE x; --"), "is not a time"),
    (("explain", "things", "\x1b[31m2013"), "is not a time"),
    (("windows", "things", "--state", "broken"), "--state: unknown state 'broken'"),
    (("windows", "things", "--from", "2013-01-01"), "is not a time with its zone"),
    (("windows", "things", "--from", "2013-01-01T05:30Z"), "is not the start of a window"),
    (("windows", "things", "--to", "2013-01-01T05:30Z"), "is not the start of a window"),
    (("windows", "things", "--from", "2999-01-01T00:00Z"), "in the future"),
    (("windows", "things", "--to", "2999-01-01T00:00Z"), "in the future"),
    (("windows", "things", "--from", "2013-01-02T00:00Z", "--to", "2013-01-01T00:00Z"), "empty or reversed"),
    (("repair", "things", "--from", "2013-01-02T00:00Z", "--to", "2013-01-01T00:00Z", "--dry-run"), "reversed"),
    (("repair", "things", "--from", "2013-01-01T00:00", "--to", "2013-01-02T00:00Z", "--dry-run"), "with its zone"),
    (("repair", "things", "--from", "2013-01-01T00:00Z", "--to", "2013-01-01T00:30Z", "--dry-run"), "not the start"),
    (("repair", "things", "--from", "2998-01-01T00:00Z", "--to", "2999-01-01T00:00Z", "--dry-run"), "in the future"),
    (("repair", "things", *RANGE), "a repair needs a reason"),
    (("repair", "things", *RANGE, "--reason", "  "), "a repair needs a reason"),
    (("repair", "things", *RANGE, "--reason", "x" * 501), "shorten it"),
    (("repair", "things", *RANGE, "--reason", "a\x1b[2Jb"), "cannot be shown"),
    (("compact", "nosuch"), "there is no pipeline"),
    (("compact", "things", "--older-than", "soon"), "'soon' is not a duration"),
    (("stack", "up", "nosuch"), "the stack has no part nosuch"),
]


@pytest.mark.parametrize(("words", "said"), CASES, ids=[" ".join(map(ascii, words))[:60] for words, _ in CASES])
def test_malformed_input_is_refused_in_one_line(run: Any, home: Path, words: tuple[str, ...], said: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert said in line
    assert line.isprintable()


NEEDS_POSTGRES = [
    ("windows", "things"),
    ("windows", "things", "--json"),
    ("explain", "things", "2013-01-01T05:00Z"),
    ("repair", "things", *RANGE, "--dry-run"),
    ("repair", "things", *RANGE, "--reason", "why not"),
    ("compact", "things", "--dry-run"),
    ("ledger", "migrate"),
    ("pipelines", "migrate", "things", "--dry-run"),
]


@pytest.mark.parametrize("words", [*NEEDS_POSTGRES, ("ledger", "rebuild", "things")], ids=" ".join)
def test_missing_address_is_reported_with_its_variable(run: Any, home: Path, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 75
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "set ONCEOVER_POSTGRES" in line


@pytest.mark.parametrize("words", NEEDS_POSTGRES, ids=" ".join)
def test_database_that_is_down_is_named_without_its_password(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ONCEOVER_POSTGRES", "postgresql://me:secret@127.0.0.1:1/onceover")
    result = run(*words)
    assert result.exit_code == 75
    (line,) = result.stderr.splitlines()
    assert "PostgreSQL at 127.0.0.1:" in line
    assert "start it, or correct ONCEOVER_POSTGRES" in line
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("pipelines/things.toml", "[contract\n", "pipelines/things.toml"),
        (".local/endpoints.json", "{", "endpoints.json cannot be read"),
    ],
)
def test_malformed_file_is_reported_in_one_line(run: Any, home: Path, file: str, text: str, said: str) -> None:
    (home / ".local").mkdir()
    (home / file).write_text(text)
    result = run("windows", "things")
    assert result.exit_code == 78
    (line,) = result.stderr.splitlines()
    assert said in line
