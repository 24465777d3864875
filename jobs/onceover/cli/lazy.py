"""Commands that are modules, each imported only when called: commands need heavy libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from onceover.cli.command import COMMANDS, AnyCommand, unwrap


class LazyCommand(TyperCommand):
    """The command of a module: listed by its function's docstring, which is read from the source, and otherwise the
    command that the module registers."""

    def __init__(self, name: str, module: str, panel: str | None) -> None:
        self._module = module
        spec = find_spec(module)
        source = Path(spec.origin).read_text() if spec and spec.origin else ""
        docstring = re.search(r'^def {}_?\(.*?^    """(.*?)"""'.format(module.rpartition(".")[2]), source, re.M | re.S)
        super().__init__(name, help=unwrap(docstring and docstring[1]), rich_help_panel=panel)

    def load(self) -> AnyCommand:
        import_module(self._module)
        return COMMANDS[self._module]

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        return self.load().make_context(*arguments, **named)


def list_commands(package: str, names: Iterable[str], panel: str | None = None) -> dict[str, Any]:
    """Return the commands in the modules of a package: accept-loss is in accept_loss.py."""
    return {name: LazyCommand(name, f"{package}.{name.replace('-', '_')}", panel) for name in names}


def make_group(name: str, package: str, panel: str, names: Iterable[str], help: str) -> TyperGroup:
    """Return the group of the commands in a package's modules, itself listed in that panel."""
    commands = list_commands(package, names)
    return TyperGroup(name=name, help=help, commands=commands, no_args_is_help=True, rich_help_panel=panel)
