"""`onceover verify`: one window's certificate recomputed, from raw and from the aggregates' rows."""

from __future__ import annotations

import typer

from onceover.audit import service as audit_service
from onceover.cli.arguments import AsJson, PipelineName, WindowStart, who
from onceover.cli.audit_report import CODES, carry_out
from onceover.cli.exit_codes import FAILED, epilog
from onceover.cli.output import as_json, draw_table, say
from onceover.cli.ranges import window_of
from onceover.context import open_pipeline


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover verify flights 2013-01-05T14:00Z",
            "onceover verify flights 2013-01-05T14:00Z --json",
            codes=CODES | {FAILED: "they differ, or the window has no certificate"},
        )
    )(verify)


def verify(pipeline: PipelineName, window: WindowStart, json: AsJson = False) -> None:
    """Recompute a window's certificate from raw and from the rows of the aggregates, and say equal or where not.

    Reads the window file whole, with Spark; changes nothing. The result is kept in the ledger, in `onceover.audit`.
    """
    with open_pipeline(pipeline, "verify") as context:
        chosen, name = window_of(context, window), context.name
        audit_id = audit_service.request_audit(context, "window", start=chosen.start, end=chosen.end, who=who())
        found = carry_out(context, audit_id or 0)
    if json:
        as_json({"pipeline": name, "window": str(chosen), "audit_id": audit_id, **found})
    else:
        say(
            draw_table(
                ["side", ">records", "digest"],
                (
                    (side, found[side]["records"], found[side]["digest"])
                    for side in ("certificate", "raw", "aggregates")
                ),
            )
        )
        for difference in found["differences"]:
            say(difference)
        if not found["stands"]:
            say(f"Its certificate stands no longer; why: `onceover explain {name} {chosen}`.")
        say(f"window {chosen} of {name}: {'equal' if found['equal'] else 'NOT equal'}")
    if not found["equal"]:
        raise typer.Exit(FAILED)
