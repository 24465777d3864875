"""Every command and option that a page shows exists: lines are parsed by the program itself, and not run."""

from __future__ import annotations

import re

import pytest
import typer
from tests.docs.pages import PAGES, ROOT, Page, commands
from tests.onceover.cli.conftest import COMMANDS

from onceover.cli.app import app
from onceover.cli.lazy import LazyCommand
from onceover.model.finding_kinds import Kind

PROGRAM = typer.main.get_command(app)
# What a reader puts a value for.
PLACEHOLDERS = {
    "PIPELINE": "flights",
    "WINDOW": "2013-01-05T14:00Z",
    "TIME": "2013-01-05T14:00Z",
    "RANGE": "1f2e3d4c-0:1200-1300",
    "REQUEST": "12",
    "...": "2013-01-05T14:00Z",
}
# Options of other programs: spark-submit, airflow, Prometheus (--web.enable-...) and git; and what every command has.
OTHERS = {
    *("--master", "--py-files", "--conn-type", "--conn-host", "--conn-port", "--conn-extra"),
    *("--web", "--follow", "--help", "--scale", "--format", "--file", "--dbname"),
    *("--maintenance-db", "--owner", "--exit-on-error", "--clean", "--exclude", "--transform"),
}
SHOWN = [words for page in PAGES for words in commands(page.shown)]
MENTIONED = [words for page in PAGES for words in commands(page.mentioned)]
BOUNDS = {"pipeline": "PIPELINE", "window": "WINDOW", "end": "TIME"}


def resolve(words: list[str]) -> tuple[typer.Context, list[str]]:
    """The context of the command that these words begin with, and the words after its name."""
    context = typer.Context(PROGRAM, info_name="onceover")
    command = PROGRAM
    while hasattr(command, "get_command") and words and not words[0].startswith("-"):
        inner = command.get_command(context, words[0])
        assert inner is not None, f"there is no command {words[0]!r} in `{context.command_path}`"
        inner = inner.load() if isinstance(inner, LazyCommand) else inner
        context, command = typer.Context(inner, info_name=words[0], parent=context), inner
        words = words[1:]
    return context, words


def options_of(context: typer.Context) -> set[str]:
    return {name for parameter in context.command.get_params(context) for name in parameter.opts}


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_shown_command_is_parsed_by_the_program(words: list[str]) -> None:
    context, rest = resolve(words)
    values = [PLACEHOLDERS.get(word, word) for word in rest]
    context.command.make_context(context.info_name, values, parent=context.parent).close()


@pytest.mark.parametrize("words", MENTIONED, ids=" ".join)
def test_mentioned_command_and_options_exist(words: list[str]) -> None:
    context, rest = resolve(words)
    assert {word for word in rest if word.startswith("-")} <= options_of(context)


@pytest.mark.parametrize("kind", Kind)
def test_command_of_every_finding_is_parsed_by_the_program(kind: Kind) -> None:
    steps = [step.fill(**BOUNDS).command for step in (*kind.meaning.first, *kind.meaning.remedy)]
    remedies = list(commands([command for command in steps if command]))
    assert remedies, "a remedy names a command"
    for words in (*remedies, *commands([kind.meaning.look.format(**BOUNDS)])):
        test_shown_command_is_parsed_by_the_program(words)


def test_parser_refuses_what_does_not_exist() -> None:
    for words in (["repair", "flights", "--nosuch"], ["offsets", "flights", "mislay"], ["ledger", "restore"]):
        with pytest.raises((typer.TyperException, AssertionError)):
            test_shown_command_is_parsed_by_the_program(words)


def test_options_named_anywhere_are_of_some_command() -> None:
    known = {option for path in COMMANDS for option in options_of(resolve([*path])[0])} | OTHERS
    named = {found for page in PAGES for found in re.findall(r"(?<![\w-])--[a-z][a-z-]*", page.text)}
    assert named - known == set()


def test_every_command_is_shown() -> None:
    assert set(COMMANDS) <= {tuple(resolve(words)[0].command_path.split()[1:]) for words in (*SHOWN, *MENTIONED)}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_make_targets_of_a_page_exist(page: Page) -> None:
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [*page.shown, *page.mentioned]
    named = {found for line in lines for found in re.findall(r"^(?:[A-Z]+=\w+ )?make ([a-z-]+)", line)}
    assert named <= there
