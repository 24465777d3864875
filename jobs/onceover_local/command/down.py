"""`onceover stack down`: the stop of the embedded stack."""

from __future__ import annotations

import typer

from onceover.cli.exit_codes import epilog
from onceover.cli.output import err, safe, say
from onceover_local.stack import Stack


def add_to(app: typer.Typer) -> None:
    app.command(epilog=epilog("onceover stack down"))(down)


def down() -> None:
    """Stop every process of the embedded stack in .local; data stays."""
    with err().status("stopping ...") as status:
        stopped = Stack().down(lambda part, what: status.console.print(f"{part:22} {safe(what)}", style="dim"))
    say(f"{len(stopped)} processes stopped; data stays in .local" if stopped else "nothing was running")
