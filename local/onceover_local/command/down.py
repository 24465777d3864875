"""`onceover stack down`: the stop of the embedded stack."""

from __future__ import annotations

from onceover.cli.command import command
from onceover.cli.output import Answer, get_stderr
from onceover.printable import escape
from onceover_local.stack import Stack


@command("onceover stack down")
def down() -> Answer:
    """Stop every process of the embedded stack in .local; data stays."""
    with get_stderr().status("stopping ...") as status:
        stopped = Stack().down(lambda part, what: status.console.print(f"{part:22} {escape(what)}", style="dim"))
    said = f"{len(stopped)} processes stopped; data stays in .local" if stopped else "nothing was running"
    return Answer({"stopped": stopped}, [said])
