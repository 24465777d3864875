"""`onceover stack down`: the stop of the embedded stack."""

from __future__ import annotations

import typer

from onceover.cli.exit_codes import format_epilog
from onceover.cli.output import get_stderr, say
from onceover.printable import escape
from onceover_local.stack import Stack


def add_to(app: typer.Typer) -> None:
    app.command(epilog=format_epilog("onceover stack down"))(down)


def down() -> None:
    """Stop every process of the embedded stack in .local; data stays."""
    with get_stderr().status("stopping ...") as status:
        stopped = Stack().down(lambda part, what: status.console.print(f"{part:22} {escape(what)}", style="dim"))
    say(f"{len(stopped)} processes stopped; data stays in .local" if stopped else "nothing was running")
