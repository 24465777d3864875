"""`onceover stack status`: every process of the stack and its state."""

from __future__ import annotations

import typer

from onceover.cli.arguments import AsJson
from onceover.cli.exit_codes import FAILED, format_epilog
from onceover.cli.output import draw_table, print_json, say, style
from onceover_local.stack import Stack


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover stack status",
            "onceover stack status --json",
            codes={FAILED: "at least one process is not up"},
        )
    )(status)


def status(json: AsJson = False) -> None:
    """List every process with its state, address and log.

    up: it answers. unready: it runs but does not answer. dead: it was started and has exited. down: it was not started.
    """
    processes = Stack().list_statuses()
    if json:
        print_json(
            [
                {
                    "name": each.name,
                    "group": each.group,
                    "state": each.state,
                    "pid": each.pid,
                    "address": each.address,
                    "log": str(each.log),
                }
                for each in processes
            ]
        )
    else:
        rows = [
            (each.name, style(each.state), None if each.pid is None else str(each.pid), each.address or None, each.log)
            for each in processes
        ]
        say(draw_table(["process", "state", "pid", "address", "log"], rows))
    if any(each.state != "up" for each in processes):
        raise typer.Exit(FAILED)
