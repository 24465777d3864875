"""What several commands take: a pipeline's name, times, a reason, `--json`; and who called them."""

from __future__ import annotations

import os
import pwd
from typing import Annotated

import typer

from onceover.config.pipelines import names
from onceover.errors import OnceoverError, UsageError
from onceover.model.reason import clean_reason


def pipeline_names(begun: str) -> list[str]:
    try:
        return [name for name in names() if name.startswith(begun)]
    except OnceoverError:
        return []  # a shell that completes a word is no place for an error


PipelineName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="Name of a pipeline: a TOML under pipelines/.", autocompletion=pipeline_names
    ),
]
WindowStart = Annotated[
    str, typer.Argument(metavar="WINDOW", help="Start of a window with its zone, like 2013-01-01T05:00Z.")
]
From = Annotated[str, typer.Option("--from", metavar="TIME", help="Start of the first window.")]
To = Annotated[str, typer.Option("--to", metavar="TIME", help="End of the last window; exclusive.")]
FromIfAny = Annotated[str | None, typer.Option("--from", metavar="TIME", help="Start of the first window.")]
FromWithTo = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="Start of the first window; needs --to. Else all windows.")
]
ToIfAny = Annotated[str | None, typer.Option("--to", metavar="TIME", help="End of the last window; exclusive.")]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; kept in the ledger. A real run needs one.")
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON, for programs.")]


def given(reason: str | None, what: str, otherwise: str = "", option: str = "--reason") -> str:
    """The reason as it is kept. UsageError if there is none that a person could read."""
    found = clean_reason(reason or "")
    if found is None:
        raise UsageError(f'{what} needs a reason, which is kept with it; give {option} "..."{otherwise}')
    return found


def who() -> str:
    """The operating system's user, whatever the environment says; behind sudo, also who called it."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        name = f"user {number}"
    caller = os.environ.get("SUDO_USER", "")
    return f"{name} (sudo by {caller[:64]})" if number == 0 and caller.isprintable() and caller else name
