"""Groups of commands, one module per command, each imported only when called: commands need heavy libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from onceover.cli.command import COMMANDS, AnyCommand, unwrap


class LazyGroup(TyperGroup):
    """The commands in the modules of `package`, in the order of `panels`: accept-loss is accept_loss.py, with a
    function that is a `command`; a group is a package with its `app`. Help is read from docstrings and imports no
    command."""

    package: ClassVar[str]
    panels: ClassVar[Mapping[str | None, Sequence[str]]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.help = unwrap(self.help)
        names = (name for names in self.panels.values() for name in names)
        # A command is None until it is called; "did you mean" needs the names.
        self.commands = cast("dict[str, Any]", dict.fromkeys(names))

    def get_command(self, ctx: Any, cmd_name: str) -> AnyCommand | None:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load(self._module(cmd_name))
        return cast("AnyCommand | None", self.commands.get(cmd_name))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with self._outlined(ctx):
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        with self._outlined(ctx):
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _outlined(self, ctx: Any) -> Iterator[None]:
        """Show commands that were not called as outlines within the block; outlines import nothing."""
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
        """Return a command for a listing, made from its function's docstring alone; a group is imported."""
        module = self._module(name)
        spec = find_spec(module)
        source = Path(spec.origin).read_text() if spec and spec.origin else ""
        for part in ast.parse(source).body:
            if isinstance(part, ast.FunctionDef) and part.name.rstrip("_") == name.replace("-", "_"):
                return TyperCommand(name, help=unwrap(ast.get_docstring(part)))
        return _load(module)


def make_group(name: str, package: str, names: Sequence[str], help: str) -> typer.Typer:
    """Return the group of the commands in a package's modules."""
    group = type("Group", (LazyGroup,), {"package": package, "panels": {None: names}})
    return typer.Typer(name=name, cls=group, no_args_is_help=True, help=help)


def _load(name: str) -> AnyCommand:
    module = import_module(name)
    return COMMANDS[name] if name in COMMANDS else typer.main.get_group(module.app)
