"""`onceover stack down`: the stop of the embedded stack."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.command import command
from onceover.cli.output import Answer, get_stderr
from onceover.printable import escape
from onceover_local.stack import Stack

Parts = Annotated[
    list[str] | None, typer.Argument(metavar="PART", help="Those of `onceover stack up`. Default: all that run.")
]


@command("onceover stack down", "onceover stack down airflow")
def down(parts: Parts = None) -> Answer:
    """Stop every process of the embedded stack in .local, or those of the parts; data stays."""
    with get_stderr().status("stopping ...") as status:
        stopped = Stack().down(
            lambda part, what: status.console.print(f"{part:22} {escape(what)}", style="dim"), parts or ()
        )
    said = f"{len(stopped)} processes stopped; data stays in .local" if stopped else "nothing was running"
    return Answer({"stopped": stopped}, [said])
