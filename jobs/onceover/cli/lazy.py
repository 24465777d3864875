"""Groups of commands, one module a command, each imported only when it is called: a door to heavy libraries."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo

AnyCommand = TyperCommand | TyperGroup


class LazyGroup(TyperGroup):
    """The commands in the modules of `package`, in the order of `panels`: accept-loss is accept_loss.py, with
    `add_to(app)`; a group is a package with its `app`. Help is drawn from docstrings, so that it imports no command."""

    package: ClassVar[str]
    panels: ClassVar[Mapping[str | None, Sequence[str]]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.help = flowing(self.help)
        names = (name for names in self.panels.values() for name in names)
        # None until it is called; the names are there for those who mistype one.
        self.commands = cast("dict[str, Any]", dict.fromkeys(names))

    def get_command(self, ctx: Any, cmd_name: str) -> AnyCommand | None:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _loaded(self._module(cmd_name))
        return cast("AnyCommand | None", self.commands.get(cmd_name))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with self._outlined(ctx):
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        with self._outlined(ctx):
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _outlined(self, ctx: Any) -> Iterator[None]:
        """Within, commands that nobody has called are outlines, which import nothing."""
        whole = self.commands
        self.commands = {name: whole[name] or self._outline(name) for name in self.list_commands(ctx)}
        for panel, names in self.panels.items():
            for name in names:
                self.commands[name].rich_help_panel = panel  # type: ignore[attr-defined]
        try:
            yield
        finally:
            self.commands = whole

    def _module(self, name: str) -> str:
        return f"{self.package}.{name.replace('-', '_')}"

    def _outline(self, name: str) -> AnyCommand:
        """A command as a list shows it, from its function's docstring alone; a group, which imports nothing heavy."""
        module = self._module(name)
        spec = find_spec(module)
        source = Path(spec.origin).read_text() if spec and spec.origin else ""
        for part in ast.parse(source).body:
            if isinstance(part, ast.FunctionDef) and part.name.rstrip("_") == name.replace("-", "_"):
                return TyperCommand(name, help=flowing(ast.get_docstring(part)))
        return _loaded(module)


def group_of(app: typer.Typer) -> TyperGroup:
    """A Typer app of several commands as a group, with its help text flowing."""
    for command in app.registered_commands:
        _flow(command)
    return typer.main.get_group(app)


def _loaded(module: str) -> AnyCommand:
    there = import_module(module)
    if isinstance(app := getattr(there, "app", None), typer.Typer):
        return group_of(app)
    app = typer.Typer(add_completion=False)
    there.add_to(app)
    _flow(app.registered_commands[0])
    return cast(AnyCommand, typer.main.get_command(app))


def _flow(command: CommandInfo) -> None:
    command.help = flowing(inspect.getdoc(command.callback))


def flowing(text: str | None) -> str:
    """The text without the source's line breaks, which rich keeps: paragraphs run to the terminal's width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (text or "").split("\n\n"))
