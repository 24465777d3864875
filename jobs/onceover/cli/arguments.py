"""Arguments that several commands share: a pipeline's name, times, a reason, `--dry-run`; and the caller's name."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from onceover.config.pipelines import names
from onceover.errors import OnceoverError, UsageError
from onceover.model.reason import clean_reason


def option(name: str, metavar: str, help: str, **more: Any) -> Any:
    """Return an option with a value."""
    return typer.Option(name, metavar=metavar, help=help, **more)


def flag(name: str, help: str) -> Any:
    """Return an option without a value."""
    return option(name, "", help)


def complete_name(begun: str) -> list[str]:
    try:
        return [name for name in names() if name.startswith(begun)]
    except OnceoverError:
        return []  # while a shell completes a word, an error has no place to be shown


NO_PIPELINE = "there is no pipeline; write a TOML into pipelines/, its name is the pipeline's"
PipelineName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="Name of a pipeline: a TOML under pipelines/.", autocompletion=complete_name
    ),
]
WindowStart = Annotated[
    str, typer.Argument(metavar="WINDOW", help="Start of a window with its zone, like 2013-01-01T05:00Z.")
]
From = Annotated[str, option("--from", "TIME", "Start of the first window.")]
To = Annotated[str, option("--to", "TIME", "End of the last window; exclusive.")]
FromIfAny = Annotated[str | None, option("--from", "TIME", "Start of the first window.")]
FromWithTo = Annotated[
    str | None, option("--from", "TIME", "Start of the first window; needs --to. Default: all windows.")
]
ToIfAny = Annotated[str | None, option("--to", "TIME", "End of the last window; exclusive.")]
DryRun = Annotated[bool, flag("--dry-run", "Only list what would be done; write nothing.")]
Reason = Annotated[str | None, option("--reason", "TEXT", "Why you do this; kept in the ledger. Required to write.")]
ReasonOrDefault = Annotated[str, option("--reason", "TEXT", "Why you do this; kept in the ledger with your name.")]


def refuse_others(action: str, *options: tuple[str, bool, Sequence[str]]) -> None:
    """Raise UsageError for an option that is given and is for other actions: each has a name, whether it is given, and
    its actions."""
    for name, is_given, actions in options:
        if is_given and action not in actions:
            raise UsageError(f"{action} takes no {name}; that is for {' and '.join(actions)}")


def require_reason(reason: str | None, what: str, otherwise: str = "", option: str = "--reason") -> str:
    """Return the reason as the ledger keeps it. Raises UsageError if the reason has no readable character."""
    text = clean_reason(reason or "")
    if text is None:
        raise UsageError(f'{what} needs a reason, which the ledger keeps; give {option} "..."{otherwise}')
    return text


def get_user() -> str:
    """Return the operating system's user, independent of the environment; under sudo, the calling user as well."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        name = f"user {number}"
    caller = os.environ.get("SUDO_USER", "")
    return f"{name} (sudo by {caller[:64]})" if number == 0 and caller.isprintable() and caller else name
