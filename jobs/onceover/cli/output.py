"""The one renderer of commands: an Answer as tables and sentences for people, as JSON for programs; errors and progress
go to stderr.

A terminal gets colour and wrapped text; a pipe or a file gets neither, so that a row stays one line. Text is never
read as markup, and no control character in it reaches a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TextIO

import rich.table
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from onceover.model.json_text import to_json
from onceover.model.window import format_second
from onceover.printable import escape

_UNWRAPPED = 100_000
_LEAST = 16
_QUIET_SECONDS = 2.0
_MAX_ROWS: Final = 50

Part = RenderableType | None
"""What a person reads: a sentence, a table, anything of rich's. None is left out."""
Key = str | int | Callable[[Any], object]
Column = str | tuple[str, Key]

_COLOURED: Final = ("state", "outcome", "check")
"""The columns whose words have colours."""
STYLES: Final = {
    **dict.fromkeys(("certified", "confirmed", "fine", "up"), "green"),
    **dict.fromkeys(("failed", "blocked", "damaged", "revoked", "wrong", "dead"), "bold red"),
    **dict.fromkeys(("repairing", "unready", "closed", "note"), "yellow"),
    **dict.fromkeys(("open", "expired", "down"), "dim"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found: `value` is printed with `--json`, `parts` otherwise; `code` is the exit code."""

    value: object
    parts: Iterable[Part]
    code: int = 0


class Table:
    """Rows, objects or mappings, in columns; after `most` of them a sentence counts the rest.

    A column is its heading and the key or function of its cells; a heading alone is also the name of the field. A
    leading `>` aligns it right; the last column gets the rest of the width. Without a row, nothing is printed but the
    sentence `empty`.
    """

    def __init__(
        self, rows: Sequence[Any], *columns: Column, most: int | None = _MAX_ROWS, empty: str | None = None
    ) -> None:
        self._rows, self._most, self._empty = rows, most, empty
        self._columns = [
            (each, each.lstrip(">").replace(" ", "_")) if isinstance(each, str) else each for each in columns
        ]

    def __rich_console__(self, console: Console, _: object) -> Iterable[RenderableType]:
        if self._rows:
            yield self._draw(console.is_terminal)
        elif self._empty is not None:
            yield Text(self._empty)
        if self._most is not None and len(self._rows) > self._most:
            yield Text(f"and {len(self._rows) - self._most:,} more; --json lists all")

    def _draw(self, terminal: bool) -> rich.table.Table:
        drawn = rich.table.Table(
            box=SIMPLE_HEAD if terminal else None,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1 if terminal else 2, 0, 0),  # a box brings a space of its own
            header_style="bold" if terminal else "",
        )
        for position, (heading, _) in enumerate(self._columns, 1):
            last = position == len(self._columns)
            drawn.add_column(
                heading.lstrip(">"),
                justify="right" if heading.startswith(">") else "left",
                no_wrap=not last,
                overflow="fold",
                min_width=_LEAST if last else None,
            )
        for row in self._rows[: self._most]:
            drawn.add_row(*(_format_cell(_read(row, key), heading) for heading, key in self._columns))
        return drawn


class Section:
    """A title over indented parts; nothing if there are none."""

    def __init__(self, title: str, parts: Iterable[Part]) -> None:
        self._title, self._parts = title, parts

    def __rich_console__(self, *_: object) -> Iterable[RenderableType]:
        if parts := [_to_safe(part) for part in self._parts if part is not None]:
            yield from ("", Text(self._title, style="bold"), Padding(Group(*parts), (0, 0, 0, 2), expand=False))


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print what a command found to stdout, as JSON or for people."""
    if as_json:
        typer.echo(to_json(answer.value, indent=2))
        return
    console = _make_console(sys.stdout)
    for part in answer.parts:
        if part is None:
            continue
        if console.is_terminal:
            # The terminal itself wraps a command, so that it can be copied.
            whole = isinstance(part, str) and ("`" in part or part.startswith("  "))
            console.print(_to_safe(part), soft_wrap=whole)
            continue
        with console.capture() as captured:
            console.print(_to_safe(part))
        for line in captured.get().splitlines():  # rich fills cells up with spaces
            typer.echo(line.rstrip())


def get_stderr() -> Console:
    return _make_console(sys.stderr, _Stderr)


def print_progress(text: str) -> None:
    """Print a line of progress to stderr: stdout holds results only."""
    _print_aside(Text(escape(text), style="dim"))


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
    _print_aside(Text.assemble(("onceover: ", "bold red"), escape(" ".join(message.split()))))


def _print_aside(line: Text) -> None:
    with suppress(OSError):  # a full disk, or a pipe without a reader, must not end the work
        get_stderr().print(line, soft_wrap=True)


def _to_safe(part: RenderableType) -> RenderableType:
    return Text(escape(part)) if isinstance(part, str) else part


def _read(row: Any, key: Key) -> object:
    if callable(key):
        return key(row)
    return getattr(row, key) if isinstance(key, str) and not isinstance(row, Mapping) else row[key]


def _format_cell(value: object, heading: str) -> Text:
    """Return the one form of a value in a table: None is a dash, numbers have their thousands apart."""
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, int):
        return Text(f"{value:,}")
    text = format_second(value) if isinstance(value, datetime) else escape(str(value))
    return Text(text, style=STYLES.get(text, "") if heading in _COLOURED else "")


class _Stderr(Console):
    def on_broken_pipe(self) -> None:
        raise  # what rich has caught, which would end the process


def _make_console(stream: TextIO, kind: type[Console] = Console) -> Console:
    # Without a terminal, rich would cut rows to the width of another stream's terminal.
    width = None if stream.isatty() else _UNWRAPPED
    return kind(file=stream, width=width, highlight=False, markup=False, emoji=False)
