"""`onceover stack status`: every process of the stack and its state."""

from __future__ import annotations

from onceover.cli.command import command
from onceover.cli.exit_codes import FAILED
from onceover.cli.output import Answer, Table
from onceover_local.stack import Stack


@command("onceover stack status", "onceover stack status --json", codes={FAILED: "at least one process is not up"})
def status() -> Answer:
    """List every process with its state, address and log.

    up: it answers. unready: it runs but does not answer. dead: it was started and has exited. down: it was not started.
    """
    processes = Stack().list_statuses()
    columns = (
        "state",
        ("pid", lambda each: each.pid and str(each.pid)),
        ("address", lambda each: each.address or None),
    )
    return Answer(
        processes,
        [Table(processes, ("process", "name"), *columns, "log", most=None)],
        FAILED if any(each.state != "up" for each in processes) else 0,
    )
