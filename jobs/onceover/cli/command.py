"""The decorator that makes a function a command: its help, its `--json`, and the print of its answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, Final, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from onceover.cli.exit_codes import format_epilog
from onceover.cli.output import Answer, print_answer

AnyCommand = TyperCommand | TyperGroup
COMMANDS: Final[dict[str, AnyCommand]] = {}
"""The command of each module that was imported."""

_F = TypeVar("_F", bound=Callable[..., Any])
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON.")]


def command(*examples: str, codes: Mapping[int, str] | None = None) -> Callable[[_F], _F]:
    """Make a function its module's command. Help ends with the examples and the exit codes, whose meanings `codes`
    makes more precise. An Answer that the function returns is printed, with `--json` its value."""

    def register(function: _F) -> _F:
        app, module = typer.Typer(add_completion=False), function.__module__
        app.command(
            module.rpartition(".")[2].replace("_", "-"),
            help=unwrap(inspect.getdoc(function)),
            epilog=format_epilog(*examples, codes=codes),
        )(_print_answer_of(function) if function.__annotations__["return"] == "Answer" else function)
        COMMANDS[module] = cast(AnyCommand, typer.main.get_command(app))
        return function

    return register


def unwrap(text: str | None) -> str:
    """Return the text without the source's line breaks, which rich would keep: the terminal wraps paragraphs."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (text or "").split("\n\n"))


def _print_answer_of(function: Callable[..., Answer]) -> Callable[..., int]:
    """Return the function with a parameter `json`, which it is given only if it has one itself."""
    signature = inspect.signature(function, eval_str=True)
    parameters = dict(signature.parameters)
    has_json = "json" in parameters
    as_json = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)

    @wraps(function)
    def run(*, json: bool, **given: Any) -> int:
        answer = function(**given, json=json) if has_json else function(**given)
        print_answer(answer, json)
        return answer.code

    run.__signature__ = signature.replace(parameters=[*parameters.values(), *(() if has_json else (as_json,))])  # type: ignore[attr-defined]
    run.__annotations__ = {**function.__annotations__, "json": AsJson}
    return run
