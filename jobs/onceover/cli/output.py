"""The output of commands: tables and text for people, JSON for programs, one line for an error.

A terminal gets colour and wrapped text; a pipe or a file gets neither, so that a row stays one line. Text is never
read as markup, and no control character in it reaches a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TextIO

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from onceover.model.json_text import to_json
from onceover.model.window import format_moment
from onceover.printable import escape

_UNWRAPPED = 100_000
_LEAST = 16
_QUIET_SECONDS = 2.0
Cell = object
"""A value in a table: None is shown as a dash, Text keeps its style."""

STYLES = {
    "certified": "green",
    "confirmed": "green",
    "fine": "green",
    "up": "green",
    "failed": "bold red",
    "blocked": "bold red",
    "damaged": "bold red",
    "revoked": "bold red",
    "wrong": "bold red",
    "dead": "bold red",
    "repairing": "yellow",
    "unready": "yellow",
    "closed": "yellow",
    "note": "yellow",
    "open": "dim",
    "expired": "dim",
    "down": "dim",
}


def get_stdout() -> Console:
    return _make_console(sys.stdout)


def get_stderr() -> Console:
    return _make_console(sys.stderr)


def say(*parts: RenderableType, whole: bool = False) -> None:
    """Print lines and tables to stdout; the terminal itself wraps `whole` lines, so that they can be copied."""
    console = get_stdout()
    if console.is_terminal:
        console.print(*parts, sep="\n", soft_wrap=whole)
        return
    with console.capture() as captured:
        console.print(*parts, sep="\n")
    for line in captured.get().splitlines():  # rich fills cells up with spaces
        typer.echo(line.rstrip())


def print_progress(text: str) -> None:
    """Print a line of progress to stderr: stdout holds results only."""
    get_stderr().print(escape(text), style="dim", soft_wrap=True)


class Occasionally:
    """Progress of a long task: at most one line every two seconds, and none in the first two."""

    def __init__(self) -> None:
        self._printed_at = time.monotonic()

    def __call__(self, text: str) -> None:
        if time.monotonic() - self._printed_at > _QUIET_SECONDS:
            self._printed_at = time.monotonic()
            print_progress(text)


def print_error(message: str) -> None:
    """Print an error as one line on stderr, whatever the message holds."""
    line = Text.assemble(("onceover: ", "bold red"), escape(" ".join(message.split())))
    get_stderr().print(line, soft_wrap=True)


def print_json(value: object) -> None:
    """Print the value as JSON to stdout, times as everywhere else."""
    typer.echo(to_json(value, indent=2))


def draw_table(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """Return a table of these rows. A heading with a leading `>` is right-aligned; the last column gets the rest of
    the width."""
    terminal = get_stdout().is_terminal
    drawn = Table(
        box=SIMPLE_HEAD if terminal else None,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1 if terminal else 2, 0, 0),  # a box brings a space of its own
        header_style="bold" if terminal else "",
    )
    for position, heading in enumerate(headings):
        number, last = heading.startswith(">"), position == len(headings) - 1
        drawn.add_column(
            heading.lstrip(">"),
            justify="right" if number else "left",
            no_wrap=not last,
            overflow="fold",
            min_width=_LEAST if last else None,
        )
    for row in rows:
        drawn.add_row(*(_format_cell(value) for value in row))
    return drawn


def style(word: str) -> Text:
    """Return a state in its colour."""
    return Text(escape(word), style=STYLES.get(word, ""))


def _format_cell(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, int):
        return Text(f"{value:,}")
    if isinstance(value, datetime):
        return Text(format_moment(value.replace(microsecond=0)))
    return Text(escape(str(value)))


def _make_console(stream: TextIO) -> Console:
    # Without a terminal, rich would cut rows to the width of another stream's terminal.
    width = None if stream.isatty() else _UNWRAPPED
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
